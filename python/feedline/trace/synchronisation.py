# SPDX-License-Identifier: Apache-2.0
"""Finds the host's waits for the GPU, the operators that caused them, and the GPU idle time that results."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .device import Device
from .events import Trace
from .intervals import EMPTY, Intervals, covered_within, difference, intersection, join, union
from .nesting import CallTree
from .operators import Operators
from .steps import Steps

# The HIP names are from ROCm builds.
_SYNCHRONISES = re.compile(r"^(?:cuda|hip)(?:Stream|Device|Event)Synchronize$|^cu(?:Stream|Ctx|Event)Synchronize$")
_COPIES = re.compile(r"^(?:cuda|hip)Memcpy(?:2D|3D)?(?:Async|WithStream)?$|^cuMemcpy")
# Operators that need a GPU value or a count on the host. The outermost of them is the one to change.
_ASKS = re.compile(
    r"^aten::(?:item|_local_scalar_dense|is_nonzero|nonzero|nonzero_static|masked_select|unique\w*|_unique\w*|equal|"
    r"to|_to_copy|copy_|index|index_put_|repeat_interleave|bincount|allclose|isclose|tolist)$"
)
_TORCH_FRAME = re.compile(r"(?:^|site-packages/)torch/|^<|^nn\.Module|^threading\.py|^runpy\.py")
_MOST_PLACES = 15
_NOTICED_NS = 50_000  # a wait ends some microseconds after the work that it waits for


@dataclass
class Waits:
    """All waits of the loop's thread for the GPU within the steps.

    Attributes:
        start, end: times in nanoseconds, one value per wait.
        waiters: the operator that waited, or the runtime call if there was no operator.
        stacks: the Python functions outside torch, outermost first; empty if the trace has no stacks.
        copy: name of the copy that the host waited for, such as "Memcpy HtoD (Pageable -> Device)", or None.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    waiters: list[str]
    stacks: list[tuple[str, ...]]
    copy: list[str | None]

    @property
    def location(self) -> list[str | None]:
        """Returns the Python function that waited, or None."""
        return [stack[-1] if stack else None for stack in self.stacks]

    def idle_after(self, device: Device | None, which: list[bool] | None = None) -> Intervals:
        """Returns the intervals in which the GPU was idle because of a wait: from the end of its work until the host
        launched more.
        """
        if device is None or not len(device.idle) or not len(self.end):
            return EMPTY
        mask = np.ones(len(self.end), np.bool_) if which is None else np.asarray(which, np.bool_)
        starts, ends = self.start[mask], self.end[mask]
        # the idle time that contains the end of the wait, or begins within the host's reaction time
        index = np.searchsorted(device.idle[:, 1], ends, side="right")
        inside = index < len(device.idle)
        idle = device.idle[index[inside]]
        near = idle[:, 0] - ends[inside] < _NOTICED_NS
        return union(np.maximum(idle[:, 0], starts[inside])[near], idle[near, 1])


def find(trace: Trace, steps: Steps, operators: Operators) -> Waits:
    """Returns the waits of the thread that runs the steps."""
    calls = trace["runtime"]
    synchronises = trace.names_where(_SYNCHRONISES.search)[calls.name]
    copies = trace.names_where(_COPIES.search)[calls.name]
    middle = (calls.start + calls.end) // 2
    window = union(steps.windows[:, 0], steps.windows[:, 1])
    inside = covered_within(window, np.stack((middle, middle + 1), axis=1)) > 0
    rows = np.flatnonzero((synchronises | copies) & (calls.thread == steps.thread) & inside)
    rows = rows[np.argsort(calls.start[rows], kind="stable")]
    within = operators.tree.innermost_at(calls.thread[rows], calls.start[rows])
    spans = _waits(trace, rows, within, copies)
    python = trace["python"]
    tree = CallTree(python.thread, python.start, python.end) if len(python) and spans else None
    waiters, stacks = [], []
    for span in spans:
        chain = operators.tree.callers(span.operator)
        names = [trace.names[trace["op"].name[operator]] for operator in chain]
        waiters.append(_waiter(names, span.call))
        stacks.append(_stack(trace, steps.thread, span.start, tree, chain))
    return Waits(
        np.asarray([span.start for span in spans], np.int64),
        np.asarray([span.end for span in spans], np.int64),
        waiters,
        stacks,
        [span.copy for span in spans],
    )


@dataclass
class _Wait:
    start: int
    end: int
    call: str
    operator: int
    copy: str | None


def _waits(trace: Trace, rows: NDArray[np.int64], within: NDArray[np.int64], copies: NDArray[np.bool_]) -> list[_Wait]:
    """Returns which of the calls, sorted by time, are waits. A copy and the wait for it within one operator count as
    one wait.

    Copies to or from pageable memory block the host within the call itself, whichever function is called; synchronous
    functions such as cudaMemcpy also block the host.
    """
    calls, column = trace["runtime"], trace["memcpy"]
    started = dict(zip(column.link.tolist(), column.name.tolist(), strict=True))
    found: list[_Wait] = []
    latest: _Wait | None = None  # a copy, blocking or not
    for row, operator in zip(rows.tolist(), within.tolist(), strict=True):
        call, start, end = trace.names[calls.name[row]], int(calls.start[row]), int(calls.end[row])
        same = latest is not None and operator >= 0 and latest.operator == operator
        if copies[row]:
            kind = started.get(int(calls.link[row]))
            latest = _Wait(start, end, call, operator, None if kind is None else trace.names[kind])
            if "Async" not in call or "Pageable" in (latest.copy or ""):
                found.append(latest)
        elif same and latest is not None and found and found[-1] is latest:
            latest.end = end
        else:
            found.append(_Wait(start, end, call, operator, latest.copy if same and latest is not None else None))
    return found


def table(waits: Waits, device: Device | None, steps: Steps) -> list[dict[str, Any]]:
    """Returns one row per operator and code location: number of waits, ms waited, and ms of GPU idle time afterwards,
    worst first.
    """
    keys = list(zip(waits.waiters, waits.location, waits.copy, strict=True))
    rows: list[dict[str, Any]] = []
    for key, count in Counter(keys).most_common():
        which = [other == key for other in keys]
        idle = waits.idle_after(device, which)
        mask = np.asarray(which)
        rows.append(
            {
                "operator": key[0],
                "place": key[1],
                "stack": list(waits.stacks[keys.index(key)]),
                "copy": key[2],
                "count": count,
                "per_step": count / max(1, len(steps.windows)),
                "wait_ms": float((waits.end - waits.start)[mask].sum() / 1e6),
                "gpu_idle_after_ms": float((idle[:, 1] - idle[:, 0]).sum() / 1e6) if device else None,
            }
        )
    return sorted(rows, key=lambda row: (-(row["gpu_idle_after_ms"] or 0.0), -row["wait_ms"]))[:_MOST_PLACES]


def host_states(steps: Steps, waits: Waits, device: Device, trace: Trace) -> dict[str, Intervals]:
    """Divides the GPU's idle time by the state of the loop's thread; if several states match, the first one counts."""
    ops, calls = trace["op"], trace["runtime"]
    mine = (ops.thread == steps.thread) & ~trace.names_where(lambda n: n.startswith("ProfilerStep#"))[ops.name]
    in_calls = calls.thread == steps.thread
    states = {
        "waiting for the loader": steps.loader,
        "restarting after a wait for the GPU": waits.idle_after(device),
        "running operators": join(
            union(ops.start[mine], ops.end[mine]), union(calls.start[in_calls], calls.end[in_calls])
        ),
    }
    left, parts = device.idle, {}
    for name, when in states.items():
        parts[name] = intersection(left, when)
        left = difference(left, when)
    return {**parts, "between operators (Python)": left}


def _waiter(names: list[str], call: str) -> str:
    return next((name for name in names if _ASKS.match(name)), names[-1] if names else call)


def _stack(trace: Trace, thread: int, time: int, tree: CallTree | None, chain: list[int]) -> tuple[str, ...]:
    frames: list[str] = []
    if tree is not None:
        innermost = tree.innermost_at(np.asarray([thread], np.int32), np.asarray([time], np.int64))
        frames = [trace.names[trace["python"].name[call]] for call in tree.callers(int(innermost[0]))]
    else:
        links = [int(trace["op"].link[operator]) for operator in chain]
        stack = next((trace.stacks[link] for link in links if link in trace.stacks), "")
        frames = stack.split(";")[::-1]  # innermost first, in old traces
    return tuple(frame for frame in frames if frame and not _TORCH_FRAME.search(frame))
