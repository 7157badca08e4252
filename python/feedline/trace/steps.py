# SPDX-License-Identifier: Apache-2.0
"""Finds the training steps in a trace and the time that each step waits for the loader."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .events import Trace
from .intervals import Intervals, covered_within, intersection, union

_STEP = re.compile(r"ProfilerStep#(\d+)$")
# torch's loaders and ours, Lightning's name for them, and feedline.Loader
_LOADER = re.compile(r"enumerate\(DataLoader\)#(?P<kind>\w+)|train_dataloader_next|^feedline\.Loader")


@dataclass
class Steps:
    """The repeated time windows of a training loop.

    Attributes:
        windows: one row per step, in order.
        numbers: the step numbers assigned by torch.
        thread: index of the thread that runs the loop; -1 if there is none.
        source: ``"ProfilerStep"``, ``"loader"`` (each step lasts from one ``next`` to the following one), or ``"whole
            trace"``, which is one window.
        left_out: number of steps truncated by the end of the recording.
        loader: intervals in which that thread was in the loader's ``next``.
        loader_kinds: classes of the iterators.
    """

    windows: Intervals
    numbers: list[int]
    thread: int
    source: str
    left_out: list[int]
    loader: Intervals
    loader_kinds: list[str]

    @property
    def durations(self) -> NDArray[np.int64]:
        """The duration of each step in nanoseconds."""
        return self.windows[:, 1] - self.windows[:, 0]

    @property
    def waits(self) -> NDArray[np.int64]:
        """The time of each step in nanoseconds that is spent in the loader's ``next``."""
        return covered_within(self.loader, self.windows)


def find(trace: Trace) -> Steps:
    """Returns the steps of `trace`; if there are no events, a single empty window."""
    ops = trace["op"]
    is_step = trace.names_where(_STEP.match)[ops.name] if len(ops) else np.zeros(0, np.bool_)
    is_loader = trace.names_where(_LOADER.search)[ops.name] if len(ops) else np.zeros(0, np.bool_)
    kinds = {_LOADER.search(trace.names[i]) for i in np.unique(ops.name[is_loader])}
    loader_kinds = sorted({found.group("kind") or found.group() for found in kinds if found})
    if is_step.any():
        order = np.flatnonzero(is_step)[np.argsort(ops.start[is_step], kind="stable")]
        thread = int(ops.thread[order[0]])
        order = order[ops.thread[order] == thread]
        windows = np.stack((ops.start[order], ops.end[order]), axis=1)
        numbers = [int(_STEP.match(trace.names[name]).group(1)) for name in ops.name[order]]  # type: ignore[union-attr]
        source = "ProfilerStep"
    elif is_loader.sum() > 1:
        thread = int(np.bincount(ops.thread[is_loader]).argmax())
        starts = np.sort(ops.start[is_loader & (ops.thread == thread)])
        windows = np.stack((starts[:-1], starts[1:]), axis=1)
        numbers, source = list(range(len(windows))), "loader"
    else:
        windows, thread = _whole(trace)
        numbers, source = [0], "whole trace"
    mine = is_loader & (ops.thread == thread)
    loader = union(ops.start[mine], ops.end[mine])
    left_out = _cut(trace, windows, thread) if source == "ProfilerStep" else np.zeros(len(windows), np.bool_)
    return Steps(
        windows[~left_out],
        [number for number, out in zip(numbers, left_out, strict=True) if not out],
        thread,
        source,
        [number for number, out in zip(numbers, left_out, strict=True) if out],
        loader,
        loader_kinds,
    )


def _whole(trace: Trace) -> tuple[Intervals, int]:
    columns = [column for column in trace.kinds.values() if len(column)]
    if not columns:
        return np.zeros((1, 2), np.int64), -1
    window = [min(int(column.start.min()) for column in columns), max(int(column.end.max()) for column in columns)]
    ops = trace["op"]
    thread = int(np.bincount(ops.thread).argmax()) if len(ops) else -1
    return np.asarray([window], np.int64), thread


def _cut(trace: Trace, windows: Intervals, thread: int) -> NDArray[np.bool_]:
    """Whether the last step has less than half the usual number of operators, because the loop ended within it."""
    cut = np.zeros(len(windows), np.bool_)
    if len(windows) < 2:
        return cut
    ops = trace["op"]
    starts = np.sort(ops.start[ops.thread == thread])
    inside = np.diff(np.searchsorted(starts, windows), axis=1)[:, 0]
    cut[-1] = inside[-1] < np.median(inside[:-1]) / 2
    return cut


def summary(steps: Steps) -> dict[str, Any]:
    """Returns times of steps and of waits for the loader in ms, and the loader's share of the total."""
    durations, waits = steps.durations / 1e6, steps.waits / 1e6
    inside = intersection(steps.loader, union(steps.windows[:, 0], steps.windows[:, 1]))
    each = (inside[:, 1] - inside[:, 0]) / 1e6
    return {
        "count": len(durations),
        "source": steps.source,
        "left_out": steps.left_out,
        "step_ms": spread(durations),
        "loader": {
            "found": bool(len(steps.loader)),
            "iterators": steps.loader_kinds,
            "share": float(waits.sum() / durations.sum()) if durations.sum() else 0.0,
            "wait_ms": spread(waits),
            "next_calls": len(each),
            "longest_ms": float(each.max()) if len(each) else 0.0,
        },
        "each": [
            {"step": number, "ms": float(duration), "loader_ms": float(wait)}
            for number, duration, wait in zip(steps.numbers, durations, waits, strict=True)
        ],
    }


def spread(values: NDArray[np.float64]) -> dict[str, float]:
    """Returns mean, median, 95th percentile and maximum of `values`; zeros if it is empty."""
    if not len(values):
        return {"mean": 0.0, "p50": 0.0, "p95": 0.0, "max": 0.0}
    p50, p95 = np.percentile(values, [50, 95])
    return {"mean": float(values.mean()), "p50": float(p50), "p95": float(p95), "max": float(values.max())}
