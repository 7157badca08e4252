# SPDX-License-Identifier: Apache-2.0
"""The search, which starts from the current settings, tries one change at a time, and keeps changes that improve the
rate.

The search acts only through two objects: a plant, which measures settings, and a clock. By default, the search changes
the number of workers, then pinning, prefetching and persistence. Feedline's loader is tried after the workers, so that
the later steps tune the faster loader. After that, the search tries neighbours of the accepted number of workers, and
batch sizes if they may change. Settings that exceed a limit are never measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from feedline.tune.ab_test import FEW_PAIRS, LEAST_GAIN_LAST, Comparison, run_ab_test
from feedline.tune.moves import ALL, Candidate, Moves, size_words
from feedline.tune.settings import Limits, Setting

_DUEL_SHARE = 0.2  # of the remaining time: an unclear change must leave time for the others
_PROOF_SHARE = 0.18  # of the whole budget, reserved for the final comparison
_SHORTEST_S, _LONGEST_S = 0.08, 2.0  # of one measurement
_PAIRS, _PAIRS_CHEAPER = 4, 8  # that a comparison should have time for
_LEAST_LEFT_S = 0.3
# A change is undecided if its interval reaches this gain, which is worth a longer measurement. On most machines, a
# minute's noise over several changes leaves smaller gains open.
OPEN_GAIN = 1.2
_WILD = 3.0  # an interval that reaches beyond this factor is meaningless
_TIME_IS_UP = "undecided: there was no time to try this"


class Refused(Exception):
    """Raised if a setting cannot be measured; the text is the reason."""


class Lost(Exception):
    """Raised if nothing can be measured any more; the text is the reason."""


@dataclass(frozen=True)
class Visit:
    """The result of measuring one setting once. Rates are in batches per second."""

    alone: float | None  # of the loader without the loop; None: not measured this time
    looped: float | None = None  # with the loop's own work between batches
    rows: float = 1.0  # samples per batch
    waits_ms: tuple[float, ...] = ()  # inside next(), of the loop if there is one
    wait_share: float | None = None  # share of the loop's time spent inside next(); only for a ladder
    gpu: float | None = None  # GPU utilisation, from 0 to 1; None: not measured

    def speed(self, alone: bool = False) -> float:
        """Returns samples per second in the loop, or from the loader without the loop if there is no loop or `alone` is
        set.
        """
        rate = self.alone if self.looped is None or (alone and self.alone is not None) else self.looped
        return max((rate or 0.0) * self.rows, 1e-9)


class Plant(Protocol):
    """Interface for objects that measure settings."""

    def visit(self, setting: Setting, seconds: float) -> Visit:
        """Measures for about `seconds`, or longer if batches are slow. Raises Refused or Lost."""

    def border_s(self, setting: Setting) -> float:
        """Returns the time from the end of an epoch to the first batch of the next epoch. Raises Refused or Lost."""

    def bytes_ahead(self, setting: Setting) -> int | None:
        """Returns the size in bytes of all batches that exist at the same time, or None if unknown."""

    def epoch_batches(self) -> int | None:
        """Returns the number of batches per epoch, or None if unknown."""


@dataclass(frozen=True)
class Expected:
    """The expected effect of a change, before it is measured: relative gains in samples per second."""

    low: float
    high: float
    why: str

    def __str__(self) -> str:
        ends = dict.fromkeys(f"{round(end, 2) + 0.0:+.0%}" for end in (self.low, self.high))
        return " to ".join(ends)


# Returns the expected effect of a candidate, from the settings accepted so far and all measurements; None if unknown.
Expectation = Callable[[Candidate, Setting, Mapping[Setting, Sequence[Visit]]], Expected | None]


@dataclass(frozen=True)
class Rung:
    """A change that was tried, or the original settings."""

    candidate: Candidate
    kept: bool
    why: str
    comparison: Comparison | None = None  # with the settings accepted so far
    against: Setting | None = None
    expected: Expected | None = None  # stated before the change was measured

    @property
    def undecided(self) -> bool:
        """Whether the change was rejected but may still gain much, because there was no time to try it or its interval
        includes a gain.
        """
        if self.kept or self.candidate.reported:
            return False
        if self.comparison is None:
            return self.why == _TIME_IS_UP
        return self.comparison.pairs < 2 or self.comparison.high >= OPEN_GAIN


@dataclass
class SearchResult:
    base: Setting
    best: Setting
    rungs: list[Rung] = field(default_factory=list)
    visits: dict[Setting, list[Visit]] = field(default_factory=dict)
    proof: Comparison | None = None  # the best settings compared with the original ones again
    notes: list[str] = field(default_factory=list)
    finished: bool = True  # False: the budget or the plant ended the search
    budget_s: float = 0.0


def search_settings(
    plant: Plant,
    base: Setting,
    limits: Limits,
    budget_s: float,
    clock: Callable[[], float],
    tell: Callable[[Rung], None] = lambda rung: None,
    all_moves: Sequence[Callable[[Setting, Limits], Moves]] = ALL,
    expect: Expectation = lambda candidate, champion, visits: None,
    announce: Callable[[Candidate, Expected | None], None] = lambda candidate, expected: None,
) -> SearchResult:
    """Searches for at most about `budget_s` seconds; calls `tell` with each step once it is decided.

    Args:
        all_moves: the changes to try, in order.
        expect: predicts the effect of a change; `announce` is called with the prediction before the change is measured.
    """
    return _Search(plant, base, limits, budget_s, clock, tell, all_moves, expect, announce).run()


class _Search:
    def __init__(
        self,
        plant: Plant,
        base: Setting,
        limits: Limits,
        budget_s: float,
        clock: Callable[[], float],
        tell: Callable[[Rung], None],
        all_moves: Sequence[Callable[[Setting, Limits], Moves]] = ALL,
        expect: Expectation = lambda candidate, champion, visits: None,
        announce: Callable[[Candidate, Expected | None], None] = lambda candidate, expected: None,
    ) -> None:
        self._moves, self._expect, self._announce = all_moves, expect, announce
        self._plant, self._limits, self._clock, self._tell = plant, limits, clock, tell
        self._until = clock() + budget_s
        self._reserve = _PROOF_SHARE * budget_s
        self._result = SearchResult(base, base, budget_s=budget_s)
        self._failed: dict[Setting, str] = {}

    def run(self) -> SearchResult:
        base = self._result.base
        try:
            self._look_at(base)
            for moves in self._moves:
                self._make(moves)
            self._decide()
            self._prove()
        except Lost as error:
            self._result.finished = False
            self._result.notes.append(str(error))
        return self._result

    def _look_at(self, base: Setting) -> None:
        self._reserve, reserve = 0.0, self._reserve
        try:
            self._visit(base, min(self._left() / 8, _LONGEST_S))
        except Refused as error:
            raise Lost(f"the current settings could not be measured: {error}") from error
        self._reserve = reserve
        self._add(Rung(Candidate(base, "as it is"), True, "where it begins"))

    def _make(self, moves: Callable[[Setting, Limits], Moves]) -> None:
        generator = moves(self._result.best, self._limits)
        kept: bool | None = None
        while True:
            try:
                candidate = next(generator) if kept is None else generator.send(kept)
            except StopIteration:
                return
            rung = self._try(candidate)
            if rung.kept:
                self._result.best = candidate.setting
            self._add(rung)
            kept = rung.comparison is not None if candidate.reported else rung.kept

    def _try(self, candidate: Candidate) -> Rung:
        champion = self._result.best
        refusal = self._over_limit(candidate.setting) or self._failed.get(candidate.setting)
        if refusal is None and self._left() < _LEAST_LEFT_S:
            self._result.finished = False
            refusal = _TIME_IS_UP
        if refusal is not None:
            return Rung(candidate, False, refusal, None, champion)
        until = self._clock() + max(_DUEL_SHARE * self._left(), 4 * _SHORTEST_S)
        expected = self._expect(candidate, champion, self._result.visits)
        self._announce(candidate, expected)
        try:
            comparison = self._ab_test(candidate, champion, until)
        except Refused as error:
            self._failed[candidate.setting] = str(error)
            return Rung(candidate, False, str(error), None, champion, expected)
        if candidate.reported:
            why = f"{comparison.ratio - 1:+.0%}; not used, because it would change the training"
            return Rung(candidate, False, why, comparison, champion, expected)
        kept = comparison.verdict in (("faster",) if candidate.must_gain else ("faster", "as fast"))
        return Rung(candidate, kept, _reason(comparison, kept, candidate.must_gain), comparison, champion, expected)

    def _ab_test(self, candidate: Candidate, champion: Setting, until: float, afresh: bool = False) -> Comparison:
        began, pairs = self._clock(), _PAIRS if candidate.must_gain else _PAIRS_CHEAPER
        seconds = min(max((until - began) / (2 * pairs), _SHORTEST_S), _LONGEST_S)

        def speed_of(setting: Setting) -> Callable[[], float]:
            if candidate.border:
                return lambda: self._speed_with_border(setting, seconds if afresh else 0.0)
            return lambda: self._visit(setting, seconds).speed(candidate.alone)

        return run_ab_test(
            speed_of(champion),
            speed_of(candidate.setting),
            lambda pairs: (
                self._clock() + (self._clock() - began) / pairs
                < (self._until - self._reserve if pairs < FEW_PAIRS else min(until, self._until - self._reserve))
            ),
            candidate.must_gain,
            to_the_end=afresh,
        )

    def _speed_with_border(self, setting: Setting, seconds: float) -> float:
        """Returns samples per second over an epoch, including the epoch's start. If `seconds` is 0, uses the rates that
        were measured earlier within epochs.
        """
        batches = self._plant.epoch_batches()
        if batches is None:
            raise Refused("the length of an epoch is unknown")
        if seconds > 0:
            visits = [self._visit(setting, seconds)]
        else:  # equal for both sides of a comparison, so that only the times between epochs differ
            visits = [
                visit for known, seen in self._result.visits.items() for visit in seen if _same_inside(known, setting)
            ]
        samples = batches * self._result.visits[self._result.base][0].rows
        inside = samples * sum(1 / visit.speed() for visit in visits) / max(len(visits), 1)
        return samples / max(inside + self._plant.border_s(setting), 1e-9)

    def _visit(self, setting: Setting, seconds: float) -> Visit:
        visit = self._plant.visit(setting, seconds)
        self._result.visits.setdefault(setting, []).append(visit)
        return visit

    def _over_limit(self, setting: Setting) -> str | None:
        needed = self._plant.bytes_ahead(setting)
        if needed is not None and needed > self._limits.memory:
            budget = size_words(self._limits.memory)
            return f"not tried: needs {size_words(needed)} for batches, but the memory budget is {budget}"
        return None

    def _decide(self) -> None:
        """If nothing was accepted, uses the time of the final comparison for the most promising undecided change."""
        result = self._result
        seen = {rung: rung.comparison.ratio for rung in result.rungs if rung.undecided and rung.comparison}
        promising = max(seen, key=lambda rung: seen[rung], default=None)
        if result.best != result.base or promising is None or seen[promising] < LEAST_GAIN_LAST:
            return
        self._reserve = 0.0
        if self._left() < _LEAST_LEFT_S:
            return
        candidate = replace(promising.candidate, must_gain=True)
        try:
            comparison = self._ab_test(candidate, result.base, self._clock() + self._left(), afresh=True)
        except Refused:
            return
        kept = comparison.verdict == "faster"
        rung = Rung(candidate, kept, _reason(comparison, kept, True), comparison, result.base)
        result.rungs[result.rungs.index(promising)] = rung
        self._tell(rung)
        if kept:
            result.best, result.proof = candidate.setting, comparison

    def _prove(self) -> None:
        result = self._result
        if result.proof is not None:
            return
        gains = [rung for rung in result.rungs[1:] if rung.kept]
        if not gains:
            return
        self._reserve = 0.0
        if self._left() < _LEAST_LEFT_S:
            result.notes.append("no time was left to compare the best settings with the original ones again")
            result.proof = gains[0].comparison if len(gains) == 1 else None
            return
        last = gains[-1].candidate
        border = result.best.persistent_workers != result.base.persistent_workers and not last.alone
        candidate = Candidate(result.best, "all together", alone=last.alone, border=border)
        try:
            result.proof = self._ab_test(candidate, result.base, self._clock() + self._left(), afresh=True)
        except Refused as error:
            result.notes.append(f"the final comparison failed: {error}")
            return
        self._keep_the_better_known(gains)

    def _keep_the_better_known(self, gains: list[Rung]) -> None:
        """Uses the comparisons from the steps if the final comparison agrees with them but had too little time."""
        proof, steps = self._result.proof, _combined(gains)
        if proof is None or steps is None or steps.low <= 1:
            return
        if proof.verdict == "unclear" and proof.pairs < FEW_PAIRS and proof.ratio > 1 and proof.low < steps.ratio:
            self._result.proof = steps
            self._result.notes.append(
                f"there was time for only {proof.pairs} more comparison{'' if proof.pairs == 1 else 's'} of the best "
                f"settings with the current ones: {proof.ratio - 1:+.0%}"
            )

    def _left(self) -> float:
        return self._until - self._reserve - self._clock()

    def _add(self, rung: Rung) -> None:
        self._result.rungs.append(rung)
        self._tell(rung)


def _combined(gains: list[Rung]) -> Comparison | None:
    """Returns the gain of all steps together; None if the steps measured different rates, or if a step has no
    interval.

    Each step was compared with the settings before it, so the ratios are multiplied. The bounds are also multiplied,
    which is conservative: it assumes that the errors of all steps have the same direction.
    """
    compared = [rung.comparison for rung in gains if rung.comparison is not None and rung.comparison.pairs > 1]
    rates = {(rung.candidate.alone, rung.candidate.border) for rung in gains}
    if len(compared) < len(gains) or len(rates) > 1 or not any(one.verdict == "faster" for one in compared):
        return None
    ratio, low, high = (
        math.prod(ends) for ends in zip(*((one.ratio, one.low, one.high) for one in compared), strict=True)
    )
    return Comparison(ratio, low, high, min(one.pairs for one in compared), "faster")


def _same_inside(one: Setting, other: Setting) -> bool:
    """Persistent workers affect only the time between epochs."""
    return one.but(persistent_workers=False) == other.but(persistent_workers=False)


def _reason(comparison: Comparison, kept: bool, must_gain: bool) -> str:
    share = comparison.ratio - 1
    if comparison.pairs < 2:
        return "undecided: there was time for only one pair"
    if kept:
        return f"gains {share:.0%}" if comparison.verdict == "faster" else "equally fast with fewer resources"
    if comparison.verdict == "slower" or comparison.high < 0.98:
        return f"{-share:.0%} slower"
    if comparison.high >= LEAST_GAIN_LAST:
        if comparison.high >= _WILD:
            return "undecided: the measurements varied too much"
        open_words = "undecided: " if comparison.high >= OPEN_GAIN else ""
        return f"{open_words}no gain was shown; {comparison.high - 1:+.0%} is possible"
    if not must_gain:
        return "not shown to be as fast"
    return "gains nothing"
