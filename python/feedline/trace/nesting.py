# SPDX-License-Identifier: Apache-2.0
"""Which call was made by which, from the times of calls on one thread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class CallTree:
    """Calls of several threads; on each thread they nest, as those of a profiler do.

    Attributes:
        order: indices of the calls by thread, start, and longest first: callers come before those they call.
        parent: for each call its caller, -1 for none.

    Args:
        thread, start, end: one value per call; times in nanoseconds. Ends that reach beyond their caller's, by
            rounding or by damage, count as inside.
    """

    def __init__(self, thread: NDArray[np.int32], start: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        self.order = np.lexsort((-end, start, thread))
        self._thread, self._start, self._end = thread, start, end
        self.parent = self._parents()

    def _parents(self) -> NDArray[np.int64]:
        parent = np.full(len(self._start), -1, np.int64)
        found: list[int] = []
        open_calls: list[tuple[int, int]] = []  # (index, end), outermost first
        on_thread = -1
        ordered = zip(
            self.order.tolist(),
            self._thread[self.order].tolist(),
            self._start[self.order].tolist(),
            self._end[self.order].tolist(),
            strict=True,
        )
        for call, thread, start, end in ordered:
            if thread != on_thread:
                on_thread = thread
                open_calls.clear()
            while open_calls and open_calls[-1][1] <= start:
                open_calls.pop()
            found.append(open_calls[-1][0] if open_calls else -1)
            open_calls.append((call, end))
        parent[self.order] = found
        return parent

    def self_time(self) -> NDArray[np.int64]:
        """Nanoseconds of each call that were not in a call that it made."""
        duration = self._end - self._start
        called = self.parent >= 0
        inside = np.bincount(self.parent[called], weights=duration[called], minlength=len(duration))
        return np.maximum(duration - inside.astype(np.int64), 0)

    def with_callees(self, value: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each call the sum of `value` over itself and everything that it called."""
        summed = value.tolist()
        parent = self.parent.tolist()
        for call in reversed(self.order.tolist()):
            if parent[call] >= 0:
                summed[parent[call]] += summed[call]
        return np.asarray(summed, np.int64)

    def outermost(self, name: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether no caller of a call has its name: their times add up without counting any twice."""
        result = np.ones(len(name), np.bool_)
        parent, names = self.parent.tolist(), name.tolist()
        # the names on the way to the root, kept by following the order of the calls
        path: list[int] = []
        depth_of = [0] * len(names)
        for call in self.order.tolist():
            depth = depth_of[parent[call]] + 1 if parent[call] >= 0 else 0
            depth_of[call] = depth
            del path[depth:]
            result[call] = names[call] not in path
            path.append(names[call])
        return result

    def innermost_at(self, thread: NDArray[np.int32], time: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each moment the call that runs on that thread and has called no other that runs; -1 for none."""
        found = np.full(len(time), -1, np.int64)
        threads, starts = self._thread[self.order], self._start[self.order]
        for number in np.unique(thread):
            asked = thread == number
            begin, end = np.searchsorted(threads, [number, number + 1])
            place = begin + np.searchsorted(starts[begin:end], time[asked], side="right") - 1
            found[asked] = np.where(place >= begin, self.order[np.maximum(place, 0)], -1) if end > begin else -1
        # the call that began last may be over: then one of its callers
        over = np.flatnonzero((found >= 0) & (self._end[found] <= time)) if len(self.order) else np.zeros(0, np.int64)
        while len(over):
            found[over] = self.parent[found[over]]
            over = over[(found[over] >= 0) & (self._end[found[over]] <= time[over])]
        return found

    def callers(self, call: int) -> list[int]:
        """`call` and those that led to it, outermost first; none for -1."""
        chain: list[int] = []
        while call >= 0:
            chain.append(call)
            call = int(self.parent[call])
        return chain[::-1]
