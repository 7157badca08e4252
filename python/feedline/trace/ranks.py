# SPDX-License-Identifier: Apache-2.0
"""Traces of several ranks of one run: who makes the others wait.

In data-parallel training all ranks have the same step time, because the collectives hold the fast ones until the
slowest has come. So a rank's own time is its step without the time in collectives, and the slowest is the one that
waits least in them. No clocks are compared: ranks of other machines have others.
"""

from __future__ import annotations

from typing import Any

from .causes import straggling_rank
from .device import COLLECTIVE, Device
from .events import Trace
from .intervals import EMPTY, Intervals, covered_within, union
from .steps import Steps


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
    """Per rank, means in ms per step, and the finding ``straggling_rank`` where one makes the others wait.

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
        result["verdict"] = straggling_rank.found(ranks, rows)
    return result
