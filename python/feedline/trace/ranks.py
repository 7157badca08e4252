# SPDX-License-Identifier: Apache-2.0
"""Compares the traces of several ranks of a run and finds stragglers.

In data-parallel training, all ranks have the same step time, because collectives block the fast ranks until the slowest
arrives. Therefore a rank's own time is its step time without collectives, and the slowest rank is the rank that waits
least in collectives. Clocks of different machines differ, so they are not compared.
"""

from __future__ import annotations

from typing import Any

from .causes import straggling_rank
from .device import COLLECTIVE, Device
from .events import Trace
from .intervals import EMPTY, Intervals, covered_within, union
from .steps import Steps


def number_of(trace: Trace, position: int) -> int:
    """Returns the rank from ``distributedInfo`` in the trace, or else its position among the files."""
    info = trace.header.get("distributedInfo")
    rank = info.get("rank") if isinstance(info, dict) else None
    return rank if type(rank) is int else position


def collectives(trace: Trace, steps: Steps, device: Device | None) -> Intervals:
    """Returns the intervals in which collectives ran: NCCL kernels, or gloo calls on the CPU."""
    if device is not None:
        return device.kernels_where(COLLECTIVE)
    ops = trace["op"]
    if not len(ops):
        return EMPTY
    is_collective = trace.names_where(lambda name: name.startswith(("gloo:", "mpi:", "nccl:")))[ops.name]
    return union(ops.start[is_collective], ops.end[is_collective])


def compare(ranks: dict[int, tuple[Steps, Intervals]]) -> dict[str, Any]:
    """Returns mean times in ms per step for each rank, and the finding ``straggling_rank`` if one rank delays the
    others.

    Args:
        ranks: steps and collectives of each rank.
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
