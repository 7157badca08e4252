# SPDX-License-Identifier: Apache-2.0
"""Reconstructs call trees from the times of calls on one thread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class CallTree:
    """Calls on several threads; within a thread they are nested, like the events of a profiler.

    Attributes:
        order: indices of the calls, sorted by thread, then by start, then longest first, so that callers precede
        callees.
        parent: index of the caller of each call, or -1.

    Args:
        thread, start, end: one value per call; times in nanoseconds. A call that ends after its caller, because of
            rounding or damage, counts as nested.
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
        """Returns the duration of each call in nanoseconds, excluding its callees."""
        duration = self._end - self._start
        called = self.parent >= 0
        inside = np.bincount(self.parent[called], weights=duration[called], minlength=len(duration))
        return np.maximum(duration - inside.astype(np.int64), 0)

    def with_callees(self, value: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns for each call the sum of `value` over the call and all its descendants."""
        summed = value.tolist()
        parent = self.parent.tolist()
        for call in reversed(self.order.tolist()):
            if parent[call] >= 0:
                summed[parent[call]] += summed[call]
        return np.asarray(summed, np.int64)

    def outermost(self, name: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether each call has no ancestor with the same name; the times of such calls can be added without double
        counting.
        """
        result = np.ones(len(name), np.bool_)
        parent, names = self.parent.tolist(), name.tolist()
        # names on the path to the root, updated while calls are visited in order
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
        """Returns for each time the innermost call running on that thread, or -1."""
        found = np.full(len(time), -1, np.int64)
        threads, starts = self._thread[self.order], self._start[self.order]
        for number in np.unique(thread):
            asked = thread == number
            begin, end = np.searchsorted(threads, [number, number + 1])
            candidate = begin + np.searchsorted(starts[begin:end], time[asked], side="right") - 1
            found[asked] = np.where(candidate >= begin, self.order[np.maximum(candidate, 0)], -1) if end > begin else -1
        # if the call that began last has ended, one of its callers runs
        over = np.flatnonzero((found >= 0) & (self._end[found] <= time)) if len(self.order) else np.zeros(0, np.int64)
        while len(over):
            found[over] = self.parent[found[over]]
            over = over[(found[over] >= 0) & (self._end[found[over]] <= time[over])]
        return found

    def callers(self, call: int) -> list[int]:
        """Returns `call` and its ancestors, outermost first; empty for -1."""
        chain: list[int] = []
        while call >= 0:
            chain.append(call)
            call = int(self.parent[call])
        return chain[::-1]
