# SPDX-License-Identifier: Apache-2.0
"""Torch's allocated memory over time and by operator."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..findings import Threshold
from .events import Trace
from .memory import Allocations
from .operators import Operators

MOST_POINTS = 120
_MOST_OPERATORS = 30
_OUTSIDE = "outside operators"
GROWING = Threshold(0.8, "share of the steps that end with more memory than the step before, if memory rises steadily")
_FEWEST_STEPS = 4


def peaks(trace: Trace) -> dict[str, int]:
    """Returns the largest number of allocated bytes, by device."""
    return {device: max(found.total) for device, found in trace.memory.items()}


def of_devices(trace: Trace, windows: NDArray[np.int64], operators: Operators) -> list[dict[str, Any]]:
    """Returns the memory of each device; docs/trace.md describes the keys. `windows`: begin and end of each step."""
    return [_of_device(trace, name, found, windows, operators) for name, found in sorted(trace.memory.items())]


def _of_device(
    trace: Trace, name: str, found: Allocations, windows: NDArray[np.int64], operators: Operators
) -> dict[str, Any]:
    time = np.frombuffer(found.time, np.int64)
    order = np.argsort(time, kind="stable")
    time, total = time[order], np.frombuffer(found.total, np.int64)[order]
    size, thread = np.frombuffer(found.size, np.int64)[order], np.frombuffer(found.thread, np.int32)[order]
    names = _names(trace, operators, thread, time)
    peak = int(np.argmax(total))
    address = np.frombuffer(found.address, np.uint64)[order]
    at_ends = _at(time, total, windows[:, 1]) if len(windows) else np.zeros(0, np.int64)
    rises = np.diff(at_ends) > 0
    steady = len(at_ends) >= _FEWEST_STEPS and float(rises.mean()) >= GROWING
    return {
        "device": name,
        "peak_bytes": int(total[peak]),
        "peak_at_ms": float((time[peak] - time[0]) / 1e6),
        "reserved_bytes": found.reserved or None,
        "first_bytes": int(total[0]),
        "last_bytes": int(total[-1]),
        "points": _points(time, total),
        "step_end_bytes": [int(value) for value in at_ends[:MOST_POINTS]],
        "rise_per_step_bytes": float((at_ends[-1] - at_ends[0]) / (len(at_ends) - 1)) if steady else None,
        "operators": _by_operator(names, size, _held(size[: peak + 1], address[: peak + 1])),
    }


def _names(trace: Trace, operators: Operators, thread: NDArray[np.int32], time: NDArray[np.int64]) -> list[str]:
    """Returns the name of the operator that ran at each event."""
    if not len(trace["op"]):
        return [_OUTSIDE] * len(time)
    place = operators.tree.innermost_at(thread, time)
    by_op = trace["op"].name
    return [trace.names[by_op[one]] if one >= 0 else _OUTSIDE for one in place]


def _held(size: NDArray[np.int64], address: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Returns which of these allocations are not released by a later one of these events."""
    held = np.zeros(len(size), np.bool_)
    alive: dict[int, int] = {}
    for at, (count, block) in enumerate(zip(size.tolist(), address.tolist(), strict=True)):
        if count > 0:
            held[at] = True
            if block:
                alive[block] = at
        elif count < 0 and (before := alive.pop(block, None)) is not None:
            held[before] = False
    return held


def _by_operator(names: list[str], size: NDArray[np.int64], held: NDArray[np.bool_]) -> list[dict[str, Any]]:
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for at, (name, count) in enumerate(zip(names, size.tolist(), strict=True)):
        if count > 0:
            row = rows[name]
            row[0] += 1
            row[1] += count
            row[2] += count if at < len(held) and held[at] else 0
    ordered = sorted(rows.items(), key=lambda one: (-one[1][2], -one[1][1], one[0]))
    keys = ("allocations", "allocated_bytes", "held_at_peak_bytes")
    return [{"name": name, **dict(zip(keys, row, strict=True))} for name, row in ordered[:_MOST_OPERATORS]]


def _at(time: NDArray[np.int64], total: NDArray[np.int64], when: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the allocated bytes at these times."""
    place = np.searchsorted(time, when, side="right") - 1
    return np.where(place >= 0, total[np.maximum(place, 0)], total[0])


def _points(time: NDArray[np.int64], total: NDArray[np.int64]) -> list[list[float]]:
    """Returns at most `MOST_POINTS` of [ms since the first event, largest bytes] over equal spans of time."""
    length = max(int(time[-1] - time[0]), 1)
    span = np.minimum((time - time[0]) * MOST_POINTS // (length + 1), MOST_POINTS - 1)
    begins = np.flatnonzero(np.diff(span, prepend=-1))
    largest = np.maximum.reduceat(total, begins)
    return [[float((time[at] - time[0]) / 1e6), int(value)] for at, value in zip(begins, largest, strict=True)]
