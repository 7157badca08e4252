# SPDX-License-Identifier: Apache-2.0
"""Compares counts with those of the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Counts of the same code differ by up to 0.6 % between runs. The rest allows for unpredictable effects: a compiler may
# generate different code for a loop if unrelated code changes.
TOLERANCE = 0.02
# Functions with at least this share of their case are stored in the baseline, to locate changes.
SHARE_KEPT = 0.01


@dataclass(frozen=True)
class Verdict:
    """The verdict on a case; `word` is "same", "better", "worse", "added" or "gone"."""

    case: str
    word: str
    before: int | None
    now: int | None
    where: list[str]

    @property
    def change(self) -> float | None:
        """The relative change: 0.05 means 5 % more instructions."""
        return None if self.before is None or self.now is None else self.now / self.before - 1


def to_baseline(environment: dict[str, str], counts: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Returns the data to store: the instructions of each case and of its larger functions."""
    cases = {}
    for case, by_function in sorted(counts.items()):
        total = sum(by_function.values())
        major = {name: n for name, n in by_function.items() if n >= SHARE_KEPT * total}
        largest_first = dict(sorted(major.items(), key=lambda item: (-item[1], item[0])))
        cases[case] = {"instructions": total, "functions": largest_first}
    return {"environment": environment, "cases": cases}


def differences(baseline: dict[str, str], now: dict[str, str]) -> list[str]:
    """Returns a line for each difference between two environments."""
    return [
        f"{key}: {baseline.get(key, 'not recorded')} in the baseline, {now.get(key, 'unknown')} here"
        for key in sorted(baseline.keys() | now.keys())
        if baseline.get(key) != now.get(key)
    ]


def compare(baseline: dict[str, Any], counts: dict[str, dict[str, int]]) -> list[Verdict]:
    """Returns a verdict for each case in either set of counts, in alphabetical order."""
    before = baseline["cases"]
    verdicts = []
    for case in sorted(before.keys() | counts.keys()):
        if case not in counts:
            verdicts.append(Verdict(case, "gone", before[case]["instructions"], None, []))
            continue
        now = sum(counts[case].values())
        if case not in before:
            verdicts.append(Verdict(case, "added", None, now, []))
            continue
        was = before[case]["instructions"]
        word = "worse" if now > was * (1 + TOLERANCE) else "better" if now < was * (1 - TOLERANCE) else "same"
        where = [] if word == "same" else _where(before[case]["functions"], counts[case], was)
        verdicts.append(Verdict(case, word, was, now, where))
    return verdicts


def _where(before: dict[str, int], now: dict[str, int], total: int) -> list[str]:
    """Returns the functions that changed most, in per cent of the case's former instructions."""
    # the baseline omits small functions, so a function that is small now is not new
    names = before.keys() | {name for name, n in now.items() if n >= SHARE_KEPT * total}
    changes = {name: now.get(name, 0) - before.get(name, 0) for name in names}
    largest = sorted(changes, key=lambda name: (-abs(changes[name]), name))[:6]
    return [
        f"{100 * changes[name] / total:+6.1f} %  {before.get(name, 0):>12,} -> {now.get(name, 0):>12,}  {name}"
        for name in largest
        if abs(changes[name]) >= 0.001 * total
    ]


def table(verdicts: list[Verdict]) -> str:
    """Formats the verdicts in columns, and below each changed case the functions that changed."""
    lines = [f"{'case':<24}{'baseline':>14}{'now':>14}{'change':>9}"]
    for verdict in verdicts:
        numbers = [f"{n:,}" if n is not None else "-" for n in (verdict.before, verdict.now)]
        change = "" if verdict.change is None else f"{100 * verdict.change:+.2f} %"
        word = "" if verdict.word == "same" else verdict.word
        lines.append(f"{verdict.case:<24}{numbers[0]:>14}{numbers[1]:>14}{change:>9}  {word}".rstrip())
        lines += [f"    {line}" for line in verdict.where]
    return "\n".join(lines)


def fails(verdicts: list[Verdict]) -> bool:
    """Returns whether a case is worse, or missing, as a missing case is no longer checked."""
    return any(verdict.word in ("worse", "gone") for verdict in verdicts)
