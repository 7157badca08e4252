# SPDX-License-Identifier: Apache-2.0
"""One rank makes the others wait in their collectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...findings import Entry, Finding, Threshold, severity_of
from ...findings.finding import NOTE
from ..intervals import Intervals, covered_within
from ..rules import Cause
from ..steps import Steps
from ..verdicts import gain_of

CONSTANT = Threshold(0.8, "minimum share of the steps in which a rank must be the slowest to be the cause")
ENOUGH_STEPS = Threshold(5, "minimum number of steps for a conclusion")


def found(ranks: Mapping[int, tuple[Steps, Intervals]], rows: Sequence[Mapping[str, Any]]) -> Finding | None:
    """Returns the finding about the rank that delays the others; None if there is no such rank, or if the ranks have no
    step in common.

    Args:
        ranks: steps and collectives of each rank.
        rows: mean times in ms per step for each rank.
    """
    shared = sorted(set.intersection(*(set(steps.numbers) for steps, _ in ranks.values())))
    if not shared:
        return None
    numbers = sorted(ranks)
    own, length = (np.stack([_per_step(*ranks[rank], shared)[i] for rank in numbers]) for i in (0, 1))
    slowest = own.argmax(axis=0)
    # the others' wait: the slowest rank's own time minus the median of the others
    lost = own.max(axis=0) - np.median(np.sort(own, axis=0)[:-1], axis=0)
    share = float(lost.sum() / max(1.0, float(length.mean(axis=0).sum())))
    if share < NOTE:
        return None
    ((slowest_index, times),) = Counter(slowest.tolist()).most_common(1)
    constant = times / len(shared) >= CONSTANT
    rank, lag = numbers[slowest_index], float(lost.mean() / 1e6)
    by_rank = {row["rank"]: row for row in rows}
    others = [row["loader_ms"] for row in rows if row["rank"] != rank]
    in_loader = by_rank[rank]["loader_ms"] - float(np.median(others))
    return Finding(
        "straggling_rank",
        severity_of(share),
        share,
        0.9 if constant and len(shared) >= ENOUGH_STEPS else 0.6,
        _evidence(constant, rank, times, len(shared), lag, in_loader),
        fix=_fix(constant, loading=constant and in_loader > lag / 2),
        gain=(gain_of(share / 2), gain_of(share)),
        about={"rank": rank if constant else None},
    )


def _evidence(
    constant: bool, rank: int, times: int, steps: int, behind_ms: float, in_loader_ms: float
) -> tuple[str, str]:
    if constant:
        return (
            f"the slowest rank needs {behind_ms:.2f} ms more of its own time per step than the median of the "
            f"others; it is rank {rank} in {times} of {steps} steps",
            f"{max(0.0, in_loader_ms):.2f} ms of this time are spent in its loader's next()",
        )
    return (
        f"the slowest rank changes from step to step, as is usual if samples differ, and is {behind_ms:.2f} ms slower",
        f"rank {rank} is slowest most often, in {times} of {steps} steps",
    )


def _fix(constant: bool, loading: bool) -> str:
    if loading:
        return "give that rank the same storage, cores and workers as the others"
    if constant:
        return "compare that rank's machine and GPU with the others' (`feedline diff`)"
    return "make the ranks' batches similar in cost: bucket samples by length, or prefetch more"


def _per_step(steps: Steps, when: Intervals, shared: list[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns a rank's own time and the total time in nanoseconds for each of the steps in `shared`."""
    rows = [steps.numbers.index(number) for number in shared]
    own = steps.durations - covered_within(when, steps.windows)
    return own[rows].astype(np.float64), steps.durations[rows].astype(np.float64)


CAUSE = Cause(
    Entry(
        code="straggling_rank",
        verb="trace",
        title="one rank makes the others wait in their collectives",
        means="Ranks synchronize in every step. The slowest rank arrives last, so it waits least.",
        recognised="A rank's own time, which is its step without collectives, is compared with the median of "
        "the others. Clocks are not compared.",
        to_do="If the same rank is slowest in most steps, compare its storage and machine with the others'. Otherwise "
        "make the ranks' batches similar in cost.",
        abstains="The trace of a rank has no collectives, or there is only one rank.",
        example="the slowest rank needs 4.10 ms more of its own time per step; it is rank 1 in 6 of 6 steps.",
    ),
    priority=100,
    evaluate=None,
)
