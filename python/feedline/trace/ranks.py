# SPDX-License-Identifier: Apache-2.0
"""Traces of several ranks of one run: who makes the others wait.

In data-parallel training all ranks have the same step time, because the collectives hold the fast ones until the
slowest has come. So a rank's own time is its step without the time in collectives, and the slowest is the one that
waits least in them. No clocks are compared: ranks of other machines have others.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .device import COLLECTIVE, Device
from .events import Trace
from .intervals import EMPTY, Intervals, covered_within, union
from .steps import Steps
from .verdicts import NOTE, gain_of, severity

_CONSTANT = 0.8  # of the steps: from there on it is one rank, and not one after the other


def number_of(trace: Trace, position: int) -> int:
    """The rank that wrote it, from ``distributedInfo``; without that, its position among the files."""
    info = trace.header.get("distributedInfo")
    rank = info.get("rank") if isinstance(info, dict) else None
    return rank if type(rank) is int else position


def collectives(trace: Trace, steps: Steps, device: Device | None) -> Intervals:
    """When collectives ran: NCCL's kernels, or on the CPU gloo's calls."""
    if device is not None:
        return device.kernels_where(COLLECTIVE)
    ops = trace["op"]
    if not len(ops):
        return EMPTY
    is_collective = trace.names_where(lambda name: name.startswith(("gloo:", "mpi:", "nccl:")))[ops.name]
    return union(ops.start[is_collective], ops.end[is_collective])


def compare(ranks: dict[int, tuple[Steps, Intervals]]) -> dict[str, Any]:
    """Per rank, means in ms per step, and a verdict ``straggling_rank`` where one makes the others wait.

    Args:
        ranks: by number, the steps and the collectives of each.
    """
    rows = []
    for rank, (steps, when) in sorted(ranks.items()):
        waiting = covered_within(when, steps.windows)
        rows.append(
            {
                "rank": rank,
                "steps": len(steps.windows),
                "step_ms": float(steps.durations.mean() / 1e6),
                "loader_ms": float(steps.waits.mean() / 1e6),
                "collectives_ms": float(waiting.mean() / 1e6),
                "own_ms": float((steps.durations - waiting).mean() / 1e6),
            }
        )
    result: dict[str, Any] = {"ranks": rows, "verdict": None, "missing": None}
    if not all(len(when) for _, when in ranks.values()):
        result["missing"] = "collectives (NCCL kernels, gloo calls) in the trace of every rank"
    else:
        result["verdict"] = _straggler(ranks, rows)
    return result


def _straggler(ranks: dict[int, tuple[Steps, Intervals]], rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    shared = sorted(set.intersection(*(set(steps.numbers) for steps, _ in ranks.values())))
    if not shared:
        return None
    numbers = sorted(ranks)
    own, length = (np.stack([_per_step(*ranks[rank], shared)[i] for rank in numbers]) for i in (0, 1))
    slowest = own.argmax(axis=0)
    # what the others wait: the slowest one's own time over that of the one in the middle of the others
    lost = own.max(axis=0) - np.median(np.sort(own, axis=0)[:-1], axis=0)
    share = float(lost.sum() / max(1.0, float(length.mean(axis=0).sum())))
    if share < NOTE:
        return None
    ((place, times),) = Counter(slowest.tolist()).most_common(1)
    constant = times / len(shared) >= _CONSTANT
    rank = numbers[place]
    by_rank = {row["rank"]: row for row in rows}
    others = [row["loader_ms"] for row in rows if row["rank"] != rank]
    in_loader = by_rank[rank]["loader_ms"] - float(np.median(others))
    behind = float(lost.mean() / 1e6)
    evidence = [
        f"the slowest rank has {behind:.2f} ms more of its own per step than the one in the middle of the others; "
        f"it is rank {rank} in {times} of {len(shared)} steps"
        if constant
        else f"the slowest rank changes from step to step, as with samples that differ; it is {behind:.2f} ms behind",
        f"{max(0.0, in_loader):.2f} ms of that are in its loader's next()"
        if constant
        else f"rank {rank} is it most often, in {times} of {len(shared)} steps",
    ]
    loading = constant and in_loader > behind / 2
    return {
        "cause": "straggling_rank",
        "share": share,
        "severity": severity(share),
        "confidence": 0.9 if constant and len(shared) >= 5 else 0.6,
        "rank": rank if constant else None,
        "evidence": evidence,
        "fix": "feed that rank as the others are fed: its storage, cores and workers"
        if loading
        else "compare that rank's machine and GPU with the others' (`feedline diff`)"
        if constant
        else "make ranks' batches alike in cost: bucket by length, or prefetch deeper",
        "predicted_gain": [gain_of(share / 2), gain_of(share)],
    }


def _per_step(steps: Steps, when: Intervals, shared: list[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nanoseconds of a rank's own, and of the whole, of each of the steps `shared`."""
    rows = [steps.numbers.index(number) for number in shared]
    own = steps.durations - covered_within(when, steps.windows)
    return own[rows].astype(np.float64), steps.durations[rows].astype(np.float64)
