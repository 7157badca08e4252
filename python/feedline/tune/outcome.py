# SPDX-License-Identifier: Apache-2.0
"""The result of a search: a gain, no gain, or undecided. Only a gain is saved."""

from __future__ import annotations

import math

from feedline.tune.ab_test import FEW_PAIRS, LEAST_GAIN_LAST, Comparison
from feedline.tune.search import Rung, SearchResult
from feedline.tune.settings import words

GAIN, NO_GAIN, UNDECIDED = "gain", "no gain", "undecided"
_LONGER = 3  # times the budget: the number of pairs grows with it, and the interval shrinks with its square root


def of(result: SearchResult) -> str:
    """Returns GAIN, NO_GAIN or UNDECIDED."""
    if is_shown(result):
        return GAIN
    return UNDECIDED if _was_claimed(result) or left_open(result) or len(result.rungs) < 2 else NO_GAIN


def is_shown(result: SearchResult) -> bool:
    """Whether the best settings are faster than the original ones over the whole 95 % interval of their comparison."""
    proof = result.proof
    return result.best != result.base and proof is not None and proof.pairs > 1 and proof.low > 1


def left_open(result: SearchResult) -> list[Rung]:
    """Returns undecided changes that may gain, most promising first."""
    found = [rung for rung in result.rungs if rung.undecided]
    return sorted(found, key=lambda rung: -math.inf if rung.comparison is None else rung.comparison.ratio, reverse=True)


def sentence(result: SearchResult) -> str:
    """Returns the last line of a report."""
    if is_shown(result):
        assert result.proof is not None
        return f"{_change(result)}: {_gain_words(result)}"
    if of(result) == NO_GAIN:
        less = "" if result.best == result.base else f"; equally fast with fewer resources: {_change(result)}"
        return f"no change that was tried helps{_bound_words(result)}: keep the current settings{less}"
    if _was_claimed(result):
        proof = result.proof
        if proof is None or proof.pairs < 2:
            found = f"{_change(result)} looks faster, but the combined gain was not measured"
        elif is_unmeasured(proof):
            found = (
                f"{_change(result)} looked faster step by step, but {proof.pairs} pairs were too few to confirm the "
                "combined gain"
            )
        else:
            found = (
                f"{_change(result)} looked faster, but the combined change was {_gain_words(result)}: no gain was shown"
            )
    else:
        found = _open_words(result)
    return f"undecided: {found}. Allow more time with --budget {_longer(result)}"


def is_unmeasured(proof: Comparison) -> bool:
    """Whether the final comparison is too imprecise to confirm or contradict the results of the steps."""
    return proof.pairs < FEW_PAIRS and proof.low < 1 < proof.ratio


def best_rung(result: SearchResult) -> Rung | None:
    """Returns the row of the settings to use, which are the best or the original ones; None if undecided."""
    kind = of(result)
    if kind == UNDECIDED:
        return None
    setting = result.best if kind == GAIN else result.base
    return next((rung for rung in result.rungs if rung.candidate.setting == setting), None)


def _was_claimed(result: SearchResult) -> bool:
    """Whether one of the changes in the best settings won its comparison, so that only the final comparison
    disagrees.
    """
    return any(rung.kept and rung.comparison and rung.comparison.verdict == "faster" for rung in result.rungs)


def _change(result: SearchResult) -> str:
    return f"{words(result.base)} → {words(result.best)}"


def _gain_words(result: SearchResult) -> str:
    proof = result.proof
    assert proof is not None
    return f"{proof.ratio - 1:+.0%} samples per second [{proof.low - 1:+.0%}, {proof.high - 1:+.0%}]"


def _bound_words(result: SearchResult) -> str:
    """Describes the gain that the intervals of rejected changes still allow."""
    rejected = [rung for rung in result.rungs if not rung.kept and not rung.candidate.reported]
    most = max((rung.comparison.high for rung in rejected if rung.comparison), default=1.0)
    return f" by more than {most - 1:.0%}" if most >= LEAST_GAIN_LAST else ""


def _open_words(result: SearchResult) -> str:
    found = left_open(result)
    if not found:
        return "only the current settings were measured"
    tried = len(result.rungs) - 1
    count = f"none of the changes tried ({tried}) was shown to help, but {len(found)} may help"
    first, comparison = found[0], found[0].comparison
    if comparison is None:
        return f"{count}: there was no time to try these settings"
    pairs = "a single pair" if comparison.pairs < 2 else f"{comparison.pairs} pairs"
    looked = "looked" if comparison.ratio >= LEAST_GAIN_LAST else "was measured"
    seen = f"{words(first.candidate.setting)} {looked} {comparison.ratio:.2g} times as fast in {pairs}"
    bounds = "" if comparison.pairs < 2 else f" [{comparison.low:.2f}, {comparison.high:.2f}]"
    return f"{count}; {seen}{bounds}"


def _longer(result: SearchResult) -> str:
    return f"{max(math.ceil(_LONGER * result.budget_s / 60), 1)}m"
