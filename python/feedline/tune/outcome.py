# SPDX-License-Identifier: Apache-2.0
"""The result of a search: a gain, no gain, or undecided. Only a gain is saved."""

from __future__ import annotations

import math

from feedline.tune.ab_test import FEW_PAIRS, LEAST_GAIN_LAST
from feedline.tune.search import Climb, Rung
from feedline.tune.settings import words

GAIN, NO_GAIN, UNDECIDED = "gain", "no gain", "undecided"
_LONGER = 3  # times the budget: the number of pairs grows with it, and the interval shrinks with its square root


def of(climb: Climb) -> str:
    """GAIN, NO_GAIN or UNDECIDED."""
    if is_shown(climb):
        return GAIN
    return UNDECIDED if _was_claimed(climb) or left_open(climb) or len(climb.rungs) < 2 else NO_GAIN


def is_shown(climb: Climb) -> bool:
    """Whether the 95 % interval of the best settings, compared with the original ones, is entirely a gain."""
    proof = climb.proof
    return climb.best != climb.base and proof is not None and proof.pairs > 1 and proof.low > 1


def left_open(climb: Climb) -> list[Rung]:
    """Returns undecided changes that may gain, most promising first."""
    found = [rung for rung in climb.rungs if rung.undecided]
    return sorted(found, key=lambda rung: -math.inf if rung.comparison is None else rung.comparison.ratio, reverse=True)


def sentence(climb: Climb) -> str:
    """Returns the last line of a report."""
    if is_shown(climb):
        assert climb.proof is not None
        return f"{_change(climb)}: {_gain_words(climb)}"
    if of(climb) == NO_GAIN:
        less = "" if climb.best == climb.base else f"; as fast, and uses less: {_change(climb)}"
        return f"no tried change gains{_bound_words(climb)}: the present settings are good{less}"
    if _was_claimed(climb):
        proof = climb.proof
        if proof is None or proof.pairs < 2:
            found = f"{_change(climb)} looks faster, but the combined gain was not measured"
        elif proof.pairs < FEW_PAIRS and proof.ratio > 1:
            found = (
                f"{_change(climb)} gained step by step, but {proof.pairs} pairs were too few to measure the combined "
                f"gain: {_gain_words(climb)}"
            )
        else:
            found = f"{_change(climb)} looked faster, but combined gave {_gain_words(climb)}: no gain was shown"
    else:
        found = _open_words(climb)
    return f"undecided: {found}. Give it more time: --budget {_longer(climb)}"


def best_rung(climb: Climb) -> Rung | None:
    """Returns the row of the settings to use: those found, or the original ones; None if undecided."""
    kind = of(climb)
    if kind == UNDECIDED:
        return None
    setting = climb.best if kind == GAIN else climb.base
    return next((rung for rung in climb.rungs if rung.candidate.setting == setting), None)


def _was_claimed(climb: Climb) -> bool:
    """Whether one of the best settings' changes won its comparison, so that only the final comparison disagreed."""
    return any(rung.kept and rung.comparison and rung.comparison.verdict == "faster" for rung in climb.rungs)


def _change(climb: Climb) -> str:
    return f"{words(climb.base)} → {words(climb.best)}"


def _gain_words(climb: Climb) -> str:
    proof = climb.proof
    assert proof is not None
    return f"{proof.ratio - 1:+.0%} samples per second [{proof.low - 1:+.0%}, {proof.high - 1:+.0%}]"


def _bound_words(climb: Climb) -> str:
    """Describes the gain that the intervals of rejected changes still allow."""
    most = max((rung.comparison.high for rung in climb.rungs if rung.comparison and not rung.kept), default=1.0)
    return f" more than {most - 1:.0%}" if most >= LEAST_GAIN_LAST else ""


def _open_words(climb: Climb) -> str:
    found = left_open(climb)
    if not found:
        return "only the present settings were measured"
    tried = len(climb.rungs) - 1
    count = f"of {tried} change{'s' * (tried != 1)} none was shown to gain, but {len(found)} may"
    first, comparison = found[0], found[0].comparison
    if comparison is None:
        return f"{count}: there was no time to try them"
    pairs = "a single pair" if comparison.pairs < 2 else f"{comparison.pairs} pairs"
    looked = "looked" if comparison.ratio >= LEAST_GAIN_LAST else "was measured"
    seen = f"{words(first.candidate.setting)} {looked} {comparison.ratio:.2g} times as fast in {pairs}"
    bounds = "" if comparison.pairs < 2 else f" [{comparison.low:.2f}, {comparison.high:.2f}]"
    return f"{count}; {seen}{bounds}"


def _longer(climb: Climb) -> str:
    return f"{max(math.ceil(_LONGER * climb.budget_s / 60), 1)}m"
