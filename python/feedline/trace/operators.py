# SPDX-License-Identifier: Apache-2.0
"""Measures operators by their time on the host and on the device."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .events import Trace
from .intervals import Intervals, covered_within
from .nesting import CallTree

_NOT_RANKED = re.compile(r"ProfilerStep#\d+$")


class Operators:
    """The call tree of a trace's operators, and the kernels that each operator launched.

    Attributes:
        tree: the call tree of the operators in ``trace["op"]``.
        device_self: duration in nanoseconds of the kernels and copies that each operator itself launched.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        ops = trace["op"]
        self.tree = CallTree(ops.thread, ops.start, ops.end)
        self.device_self = self._device_times()

    def _device_times(self) -> NDArray[np.int64]:
        calls = self._trace["runtime"]
        spent = np.zeros(len(self._trace["op"]), np.int64)
        known = np.flatnonzero(calls.link >= 0)
        known = known[np.argsort(calls.link[known], kind="stable")]
        if not len(known) or not len(spent):
            return spent
        links = calls.link[known]
        for kind in ("kernel", "memcpy", "memset"):
            column = self._trace[kind]
            index = np.minimum(np.searchsorted(links, column.link), len(links) - 1)
            started = np.flatnonzero(links[index] == column.link)
            call = known[index[started]]
            operator = self.tree.innermost_at(calls.thread[call], calls.start[call])
            launched = operator >= 0
            np.add.at(spent, operator[launched], (column.end - column.start)[started][launched])
        return spent

    def ranking(self, windows: Intervals) -> list[dict[str, Any]]:
        """Returns one row per operator name, for operators that began within `windows`, sorted by device or host time,
        descending.

        Times are in ms: ``host_self`` excludes and ``host_total`` includes callees; ``device_self`` covers the
        operator's own launches, ``device_total`` also those of callees. In totals, recursive operators count once.
        """
        ops, trace = self._trace["op"], self._trace
        if not len(ops):
            return []
        counted = _begins_within(ops.start, windows) & ~trace.names_where(_NOT_RANKED.match)[ops.name]
        outermost = counted & self.tree.outermost(ops.name)
        size = len(trace.names)

        def by_name(which: NDArray[np.bool_], value: NDArray[np.int64]) -> NDArray[np.float64]:
            return np.asarray(np.bincount(ops.name[which], weights=value[which], minlength=size) / 1e6)

        calls = np.bincount(ops.name[counted], minlength=size)
        columns = {
            "host_self_ms": by_name(counted, self.tree.self_time()),
            "host_total_ms": by_name(outermost, ops.end - ops.start),
            "device_self_ms": by_name(counted, self.device_self),
            "device_total_ms": by_name(outermost, self.tree.with_callees(self.device_self)),
        }
        key = "device_self_ms" if self.device_self.any() else "host_self_ms"
        order = np.argsort(-columns[key], kind="stable")
        return [
            {"name": trace.names[i], "calls": int(calls[i]), **{name: float(v[i]) for name, v in columns.items()}}
            for i in order
            if calls[i]
        ]


def kernels(trace: Trace, windows: Intervals) -> list[dict[str, Any]]:
    """Returns one row per kernel name, for kernels that began within `windows`: calls, ms, and weighted mean occupancy
    or None.
    """
    column = trace["kernel"]
    inside = _begins_within(column.start, windows)
    names, times = column.name[inside], (column.end - column.start)[inside]
    occupancy = column.occupancy[inside]
    said = ~np.isnan(occupancy)
    size = len(trace.names)
    calls = np.bincount(names, minlength=size)
    spent = np.bincount(names, weights=times, minlength=size)
    weight = np.bincount(names[said], weights=times[said], minlength=size)
    percent = np.bincount(names[said], weights=(times * np.where(said, occupancy, 0))[said], minlength=size)
    return [
        {
            "name": trace.names[i],
            "calls": int(calls[i]),
            "ms": float(spent[i] / 1e6),
            "occupancy_percent": float(percent[i] / weight[i]) if weight[i] else None,
        }
        for i in np.argsort(-spent, kind="stable")
        if calls[i]
    ]


def in_loader(trace: Trace, loader: Intervals, thread: int, most: int = 10) -> list[dict[str, Any]]:
    """Returns Python functions by self time in ms within the loader's ``next``, if with_stack=True was set."""
    column = trace["python"]
    if not len(column) or not len(loader):
        return []
    mine = np.flatnonzero((column.thread == thread) & _begins_within(column.start, loader))
    tree = CallTree(column.thread[mine], column.start[mine], column.end[mine])
    names = column.name[mine]
    spent = np.bincount(names, weights=tree.self_time(), minlength=len(trace.names)) / 1e6
    calls = np.bincount(names, minlength=len(trace.names))
    order = np.argsort(-spent, kind="stable")[:most]
    return [{"name": trace.names[i], "calls": int(calls[i]), "self_ms": float(spent[i])} for i in order if calls[i]]


def _begins_within(start: NDArray[np.int64], windows: Intervals) -> NDArray[np.bool_]:
    return covered_within(windows, np.stack((start, start + 1), axis=1)) > 0
