# SPDX-License-Identifier: Apache-2.0
"""Places where the host waited for the GPU, what asked for it, and what the GPU did not do because of it."""

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

# cudaMemcpy without Async waits as well; the HIP names are those of ROCm builds
_WAITS = re.compile(
    r"^(?:cuda|hip)(?:Stream|Device|Event)Synchronize$|^cu(?:Stream|Ctx|Event)Synchronize$|^(?:cuda|hip)Memcpy$"
)
# Operators that must know a value of the GPU, or the number of values: the outermost of them is the one to change.
_ASKS = re.compile(
    r"^aten::(?:item|_local_scalar_dense|is_nonzero|nonzero|nonzero_static|masked_select|unique\w*|_unique\w*|equal|"
    r"to|_to_copy|copy_|index|index_put_|repeat_interleave|bincount|allclose|isclose|tolist)$"
)
_TORCH_FRAME = re.compile(r"(?:^|site-packages/)torch/|^<|^nn\.Module|^threading\.py|^runpy\.py")
_MOST_PLACES = 15
_NOTICED_NS = 50_000  # a wait ends some microseconds after the work that it waited for


@dataclass
class Waits:
    """Every wait of the loop's thread for the GPU within the steps.

    Attributes:
        start, end: nanoseconds, one value per wait.
        asks: the operator that asked, or the call where no operator did.
        stacks: the Python functions that are not torch's own, outermost first; empty where the trace has no stacks.
        copy: name of the copy that it waited for ("Memcpy HtoD (Pageable -> Device)"), or None.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    asks: list[str]
    stacks: list[tuple[str, ...]]
    copy: list[str | None]

    @property
    def place(self) -> list[str | None]:
        """The Python function that asked, or None."""
        return [stack[-1] if stack else None for stack in self.stacks]

    def idle_after(self, device: Device | None, which: list[bool] | None = None) -> Intervals:
        """When the GPU had nothing to do because of a wait: from the end of its work until the host sent it more."""
        if device is None or not len(device.idle) or not len(self.end):
            return EMPTY
        mask = np.ones(len(self.end), np.bool_) if which is None else np.asarray(which, np.bool_)
        starts, ends = self.start[mask], self.end[mask]
        # the idle time that holds the end of the wait, or begins within the moment that the host needed to notice
        place = np.searchsorted(device.idle[:, 1], ends, side="right")
        inside = place < len(device.idle)
        idle = device.idle[place[inside]]
        near = idle[:, 0] - ends[inside] < _NOTICED_NS
        return union(np.maximum(idle[:, 0], starts[inside])[near], idle[near, 1])


def find(trace: Trace, steps: Steps, operators: Operators) -> Waits:
    """The waits of the thread that runs the steps."""
    calls = trace["runtime"]
    waits = trace.names_where(_WAITS.search)[calls.name] & (calls.thread == steps.thread)
    middle = (calls.start + calls.end) // 2
    window = union(steps.windows[:, 0], steps.windows[:, 1])
    rows = np.flatnonzero(waits & (covered_within(window, np.stack((middle, middle + 1), axis=1)) > 0))
    python = trace["python"]
    tree = CallTree(python.thread, python.start, python.end) if len(python) and len(rows) else None
    copies = _copies_by_link(trace)
    asks, stacks, names = [], [], []
    for row in rows.tolist():
        running = operators.tree.running_at(steps.thread, int(calls.start[row]))
        chain = [(trace.names[trace["op"].name[op]], int(trace["op"].link[op])) for op in running]
        call = trace.names[calls.name[row]]
        asks.append(_asks(chain, call))
        stacks.append(_stack(trace, steps.thread, int(calls.start[row]), tree, chain))
        names.append(copies.get(int(calls.link[row])) or next((copies[k] for _, k in chain if k in copies), None))
    return Waits(calls.start[rows], calls.end[rows], asks, stacks, names)


def table(waits: Waits, device: Device | None, steps: Steps) -> list[dict[str, Any]]:
    """One row per operator and place: waits, ms waited and ms that the GPU was idle afterwards, the worst first."""
    keys = list(zip(waits.asks, waits.place, waits.copy, strict=True))
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
    """What of the GPU's idle time goes to which state of the loop's thread; the first that fits takes it."""
    ops, calls = trace["op"], trace["runtime"]
    mine = (ops.thread == steps.thread) & ~trace.names_where(lambda n: n.startswith("ProfilerStep#"))[ops.name]
    in_calls = calls.thread == steps.thread
    states = {
        "waiting for the loader": steps.loader,
        "beginning again after a wait for the GPU": waits.idle_after(device),
        "running operators": join(
            union(ops.start[mine], ops.end[mine]), union(calls.start[in_calls], calls.end[in_calls])
        ),
    }
    left, parts = device.idle, {}
    for name, when in states.items():
        parts[name] = intersection(left, when)
        left = difference(left, when)
    return {**parts, "between operators (Python)": left}


def _copies_by_link(trace: Trace) -> dict[int, str]:
    column = trace["memcpy"]
    return {
        link: trace.names[name]
        for link, name in zip(column.link.tolist(), column.name.tolist(), strict=True)
        if link >= 0
    }


def _asks(chain: list[tuple[str, int]], call: str) -> str:
    return next((name for name, _ in chain if _ASKS.match(name)), chain[-1][0] if chain else call)


def _stack(
    trace: Trace, thread: int, time: int, tree: CallTree | None, chain: list[tuple[str, int]]
) -> tuple[str, ...]:
    frames: list[str] = []
    if tree is not None:
        python = trace["python"]
        frames = [trace.names[python.name[call]] for call in tree.running_at(thread, time)]
    else:
        for _, link in chain:
            if link in trace.stacks:  # innermost first, in old traces
                frames = trace.stacks[link].split(";")[::-1]
                break
    return tuple(frame for frame in frames if not _TORCH_FRAME.search(frame))
