# SPDX-License-Identifier: Apache-2.0
"""Finds the differences between two run records, and the facts that explain the difference in the main metric.

The rate of a loader is its capacity divided by the work of a batch:

    rate = capacity / work        so        ln(rate b / rate a) = ln(capacity b / a) - ln(work b / a)

Capacity is the number of CPUs, threads or workers; work is the sum of the stages' times per batch. Both records contain
measured values of capacity and work. Therefore a fact that changes the capacity explains the part of the logarithm of
the rates' ratio that corresponds to the fact's own ratio. A fact that changes stages explains at most the part that is
due to the times of those stages. The records do not explain the rest of the difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..findings import Finding
from .effects import (
    AGAINST,
    BY_RANK,
    EXPLAINS,
    MOST,
    PARTLY,
    POSSIBLE,
    SEVERITIES,
    SOME,
    UNKNOWN,
    UNSEEN,
    WORKLOAD,
    code_of,
)
from .measured import FigureDifference, StageDifference, Work, figures_of, speed_of
from .probes import GROUP, SHOWS_BUSY, STAGES, Probe, is_busy, load_of, of_fact, probes_of
from .rules import Rule, is_usual, rule_of

GROUPS = ("configuration", "machine", "storage", "software", "packages")
BY_PROBES = (EXPLAINS, PARTLY, POSSIBLE)  # effects that measurements of the machine itself can rule out
_EFFECTS = {code_of(effect): effect for effect in BY_RANK}


@dataclass(frozen=True)
class FactDifference:
    """A fact that differs, and its effect on the metric."""

    finding: Finding  # about the fact's group and name; the evidence is the reason for its effect
    a: Any
    b: Any
    share: float | None  # of the figure's difference, from -inf to 1 (all of it)

    @property
    def group(self) -> str:
        return str(self.finding.about["group"])

    @property
    def name(self) -> str:
        return str(self.finding.about["name"])

    @property
    def effect(self) -> str:
        """Name of the effect, determined by the finding's code."""
        return _EFFECTS[self.finding.code]

    @property
    def why(self) -> str:
        return self.finding.text

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("group", "name", "a", "b", "effect", "share", "why")}


@dataclass(frozen=True)
class Comparison:
    figures: list[FigureDifference]
    facts: list[FactDifference]  # largest explained share first
    stages: list[StageDifference]
    differs: bool  # the main figure differs beyond its spread
    explained_by: list[str]  # names of facts
    conclusion: str
    notes: list[str]
    caveats: list[str]  # other possible reasons for the difference: load, and variation between runs

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"facts": [fact.as_dict() for fact in self.facts]}


def compare(a: Mapping[str, Any], b: Mapping[str, Any], names: tuple[str, str] = ("A", "B")) -> Comparison:
    """Compares two records read by `feedline.record.read`; the conclusion refers to them by `names`."""
    figures = figures_of(a, b)
    first = figures[0] if figures else None
    speed = speed_of(first)
    work = Work(a, b)
    probes = probes_of(a, b, work, speed)
    alone = first is not None and first.name in STAGES  # the records measure the machines themselves
    facts = [] if alone else [_of_probe(probe, speed) for probe in probes if probe.shows]
    for group, name, of_a, of_b in _differing(a, b):
        rule = rule_of(group, name)
        effect, share = _effect(rule, of_a, of_b, None if alone else speed, work)
        if alone and rule is not None and of_fact(probes, rule.probes)[0]:
            effect = POSSIBLE
        why = _why(rule, name, a, b)
        if rule is not None and effect in BY_PROBES:
            effect, share, seen = _by_probes(rule, effect, share, probes)
            why += f"; {seen}" if seen else ""
        facts.append(FactDifference(_finding(group, name, effect, why), of_a, of_b, share))
    facts.sort(key=lambda fact: (BY_RANK.index(fact.effect), -(fact.share or 0.0)))
    explained = [fact.name for fact in facts if fact.effect in (EXPLAINS, PARTLY)]
    notes = [
        f"{label} has no facts about its {group}, so differences in them are not detected"
        for label, record in (("A", a), ("B", b))
        for group in GROUPS
        if record.get(group) is None
    ]
    notes += [
        f"{label} was recorded on a busy machine: machine measurements count as different only if they differ by "
        f"{SHOWS_BUSY:.0%}"
        for label, record in (("A", a), ("B", b))
        if probes and is_busy(record)
    ]
    caveats = [] if speed is None else _caveats(a, b, names)
    conclusion = _conclusion(first, speed, facts, work, names, caveats)
    return Comparison(figures, facts, work.rows, speed is not None, explained, conclusion, notes, caveats)


def _caveats(a: Mapping[str, Any], b: Mapping[str, Any], names: tuple[str, str]) -> list[str]:
    """Returns reasons why a difference may not be one of the runs' settings or machines."""
    loads = [(name, load) for name, one in zip(names, (a, b), strict=True) if (load := load_of(one))]
    runs = " and ".join(f"{name} on a busy machine ({load})" for name, load in loads)
    busy = [f"Recorded: {runs}, which alone may be the reason"] if runs else []
    return [
        *busy,
        "One record per side shows only the variation within a run: repeat both runs, and compare folders of records "
        "with `feedline compare`",
    ]


def _of_probe(probe: Probe, speed: float | None) -> FactDifference:
    """Returns a probe's measurements of the two machines as a FactDifference."""
    share = probe.share
    if speed is None or share is None:
        effect = UNSEEN if speed is None else POSSIBLE
    elif math.log(probe.slower) * speed > 0:
        effect = AGAINST
    else:
        effect = EXPLAINS if share >= MOST else PARTLY if share >= SOME else UNSEEN
    figure = probe.figure
    return FactDifference(_finding(GROUP, probe.name, effect, probe.words()), figure.a, figure.b, share)


def _by_probes(rule: Rule, effect: str, share: float | None, probes: Sequence[Probe]) -> tuple[str, float | None, str]:
    """Returns the effect of a fact, based on the probes of the two machines, as (effect, share, description).

    A fact that no probe shows has no effect. If a probe shows the fact, the share is that of the probe, since several
    facts may have caused the probe's difference.
    """
    shows, most, words = of_fact(probes, rule.probes)
    if shows is None:
        return effect, share, ""
    if not shows or (most is not None and most < SOME):
        return UNSEEN, most, words
    return POSSIBLE, most if most is not None else share, words


def _finding(group: str, name: str, effect: str, why: str) -> Finding:
    about = {"group": group, "name": name}
    return Finding(code_of(effect), SEVERITIES.get(effect, "note"), evidence=(why,), about=about)


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, str, Any, Any]]:
    found = [("run", name, a[name], b[name]) for name in ("verb", "subject") if a[name] != b[name]]
    for group in GROUPS:
        of_a, of_b = a.get(group), b.get(group)
        if of_a is None or of_b is None:
            continue
        named_by_packages = _told_by_packages(a, b) if group == "software" else set()
        for name in dict.fromkeys((*of_a, *of_b)):
            if name in named_by_packages:
                continue
            values = of_a.get(name), of_b.get(name)
            if values[0] != values[1] and not is_usual(rule_of(group, name), *values):
                found.append((group, name, *values))
    return found


def _told_by_packages(a: Mapping[str, Any], b: Mapping[str, Any]) -> set[str]:
    """Returns the facts that the records' package lists also contain; empty if a record has no package list."""
    if not a.get("packages") or not b.get("packages"):
        return set()
    return {"environment", *a["packages"], *b["packages"]}


def _effect(rule: Rule | None, a: Any, b: Any, speed: float | None, work: Work) -> tuple[str, float | None]:
    if rule is None:
        return UNKNOWN, None
    if rule.workload:
        return WORKLOAD, None
    if speed is None:
        return UNSEEN, None
    if rule.capacity:
        if not (_positive(a) and _positive(b)):
            return POSSIBLE, None  # zero workers is another mode of operation, not a smaller capacity
        share = math.log(b / a) / speed
        if share < 0:
            return AGAINST, share
        return EXPLAINS if share >= MOST else PARTLY if share >= SOME else UNSEEN, share
    if not rule.stages:
        return POSSIBLE, None
    direction = rule.faster(a, b) if rule.faster else 0
    if direction * speed < 0:
        return AGAINST, None
    borne_out = work.share(rule.stages, speed)
    if borne_out is None:
        return POSSIBLE, None
    if borne_out < SOME:
        return UNSEEN, borne_out  # its stages took no longer, so it had no effect here
    if direction == 0:
        return POSSIBLE, borne_out
    return (EXPLAINS if borne_out >= MOST else PARTLY), borne_out


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _why(rule: Rule | None, name: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    if rule is None:
        return ""
    if name != "usable_cpus":
        return rule.why
    parts = [
        f"{part} {_shown(a, part)} and {_shown(b, part)}"
        for part in ("cpus", "cpus_allowed", "quota_cpus")
        if _shown(a, part) != _shown(b, part)
    ]
    return f"{rule.why}; {', '.join(parts)}" if parts else rule.why


def _shown(record: Mapping[str, Any], name: str) -> str:
    value = (record["machine"] or {}).get(name)
    return "none" if value is None else f"{value:g}"


def _conclusion(
    figure: FigureDifference | None,
    speed: float | None,
    facts: list[FactDifference],
    work: Work,
    sides: tuple[str, str],
    caveats: Sequence[str],
) -> str:
    if figure is None:
        return "the two records have no metric in common, because they are from different commands"
    if speed is None:
        return f"{figure.label}: the records differ by no more than their spread"
    faster = (
        f"{sides[1]} is {math.exp(abs(speed)):.2f} times as {'fast' if speed > 0 else 'slow'} as {sides[0]} "
        f"({figure.label})"
    )
    before = "".join(f" {caveat}." for caveat in caveats)
    by = {effect: [fact for fact in facts if fact.effect == effect] for effect in BY_RANK}
    if by[WORKLOAD]:
        names = ", ".join(fact.name for fact in by[WORKLOAD])
        return f"{faster}, but the runs measured different work: {names}. Compare runs in which these are equal."
    if by[EXPLAINS]:
        best = by[EXPLAINS][0]
        return f"{faster}.{before} {best.name} explains {_part(best.share)}: {best.a} and {best.b}, {best.why}."
    stage = work.largest()
    seen = f" The stage with the largest change is {stage}." if stage else " The times of stages were not recorded."
    if by[PARTLY]:
        best = by[PARTLY][0]
        return (
            f"{faster}.{before} {best.name} explains {_part(best.share)}: {best.why}; the records do not explain the "
            f"rest.{seen}"
        )
    if by[POSSIBLE]:
        names = ", ".join(fact.name for fact in by[POSSIBLE])
        return f"{faster}.{before} Possible explanations, which the records do not prove: {names}.{seen}"
    return f"{faster}.{before} The records do not explain the difference.{seen}"


def _part(share: float | None) -> str:
    return "it" if share is None or share >= 0.9 else f"about {share:.0%} of it"
