# SPDX-License-Identifier: Apache-2.0
"""The worker's side of a ring, which allocates blocks in its region within the memory budget.

A block is allocated in the lowest free range that is long enough, so that a region's memory grows from its start. Only
`RingWriter` allocates blocks, so it knows the free ranges. A block's state shows when the block has been freed.
"""

from __future__ import annotations

import bisect
import os
import time
from collections.abc import Callable, Iterable

import numpy as np

from ...errors import StorageError
from ...machine import limits
from .ring import ELSEWHERE, HEADER, HELD, IN_FLIGHT, PUNCHED, REUSABLE, Block, Control, Ring, make_block, round_up

_LARGE_BATCH = 8 << 20  # bytes: writing such a batch takes milliseconds, and prefetching as many as of small ones would
# take much memory


class RingWriter:
    """Worker `worker`'s allocator. `wait_step` is called repeatedly while the budget makes the worker wait, and may
    raise an exception to end the wait.
    """

    def __init__(
        self,
        ring: Ring,
        worker: int,
        budget: int,
        ahead: int,
        occupied: Iterable[tuple[int, int]] = (),
        wait_step: Callable[[], None] = lambda: None,
    ) -> None:
        self._ring, self._worker, self._budget, self.ahead = ring, worker, budget, ahead
        self._control = ring.control(worker)
        self._memory = ring.map_region(worker)
        self.address = np.frombuffer(self._memory, dtype=np.uint8, count=1).ctypes.data
        self._wait_step = wait_step
        self.task = -1  # the current task
        self._blocks: dict[int, _Extent] = {}  # start -> block that is in use, as far as known
        self._free = [(0, ring.region_bytes)]  # sorted, never adjacent
        self._backed = 0  # the region has pages below this offset
        self._scan: list[int] = []
        self._unsent: set[int] = set()
        self._sent_bytes = 0
        self._since_scan = 0
        self._task_bytes = self._last_task_bytes = 0
        for start, size in sorted(occupied):
            self._take(start, size)
            self._blocks[start] = _Extent(size, worker_holds=False, sent=True)
            self._sent_bytes += size

    def allocate(self, payload: int) -> Block:
        """Allocates a block of `payload` bytes. Raises a StorageError that contains the sizes if there is not enough
        memory.
        """
        size = round_up(payload + HEADER)
        self._reap(32)
        self._keep_budget(size)
        self._keep_depth()
        start = self._find(size)
        self._since_scan += 1
        # Scan all blocks before growing, but not every time, as holding n batches would cost n * n checks.
        if start is None or (start + size > self._backed and self._since_scan > len(self._blocks) // 16):
            self._since_scan = 0
            self._reap(len(self._blocks))
            start = self._find(size)
        if start is None:
            raise StorageError(
                f"a batch needs {size:,} bytes, but {sum(b.size for b in self._blocks.values()):,} of the "
                f"{self._ring.region_bytes:,} bytes of worker {self._worker}'s address space are in use"
            )
        self._back(start, size)
        self._take(start, size)
        extent = self._blocks[start] = _Extent(size)
        self._unsent.add(start)
        self._memory[start] = REUSABLE
        self._task_bytes += size
        return make_block(self._memory, start + HEADER, payload, extent.leave)

    def find(self, address: int, nbytes: int) -> int | None:
        """Returns the start of the unsent block that contains `nbytes` at `address`, or None."""
        offset = address - self.address
        if not 0 <= offset < self._ring.region_bytes:
            return None
        for start in self._unsent:
            if start <= offset and offset + nbytes <= start + self._blocks[start].size:
                return start
        return None

    def start_of(self, block: Block) -> int:
        return block.ctypes.data - self.address - HEADER

    def send(self, start: int) -> int:
        """Marks a block as in flight, and returns its size including the header. The consumer owns the block from then
        on.
        """
        extent = self._blocks[start]
        extent.sent = True
        self._unsent.discard(start)
        self._sent_bytes += extent.size
        self._memory[start] = IN_FLIGHT
        return extent.size

    def end_task(self) -> None:
        """Called between batches: adjusts the size of the part of the region that is reused."""
        # Small batches: as many as are requested from this worker, one that the training loop holds, and those that a
        # GPU still reads.
        batches = self.ahead + (self._task_bytes < _LARGE_BATCH)
        keep = (max(2, batches) + self._control[Control.GPU]) * self._task_bytes
        if keep > self._control[Control.KEEP]:
            self._control[Control.KEEP] = keep
        self._last_task_bytes, self._task_bytes = self._task_bytes, 0

    def _reap(self, limit: int) -> None:
        for _ in range(min(limit, len(self._blocks))):
            if not self._scan:
                self._scan = list(self._blocks)
            start = self._scan.pop()
            extent = self._blocks.get(start)
            if extent is None or extent.worker_holds:
                continue
            state = self._memory[start]
            if extent.sent and state not in (PUNCHED, REUSABLE):
                continue
            del self._blocks[start]
            self._unsent.discard(start)
            self._sent_bytes -= extent.size if extent.sent else 0
            self._give(start, extent.size)
            if state == PUNCHED:
                self._backed = min(self._backed, start)

    def _is_wanted(self) -> bool:
        """Returns whether the loop waits for the current batch, or for another loader's session in this process.

        Later batches may already be waiting if this batch had bad samples or its first worker died, but the loop does
        not use them before this batch. Another session cannot continue before this batch is finished.
        """
        return self._control[Control.WANTED] in (self.task + 1, ELSEWHERE)

    def is_full(self) -> bool:
        """Returns whether a batch as large as the last one would have to wait for memory."""
        self._reap(len(self._blocks))
        in_flight = self._sent(IN_FLIGHT)
        return in_flight > 0 and in_flight + self._last_task_bytes > self._budget

    def _sent(self, state: int) -> int:
        return sum(e.size for start, e in self._blocks.items() if e.sent and self._memory[start] == state)

    def _keep_budget(self, size: int) -> None:
        # If no batch waits, one is always allowed: the consumer may be about to request it.
        while True:
            if self._sent_bytes + self._task_bytes + size <= self._budget:
                return
            in_flight = self._sent(IN_FLIGHT)
            if in_flight == 0 or self._is_wanted() or in_flight + self._task_bytes + size <= self._budget:
                return
            self._wait_step()
            time.sleep(0.001)

    def _keep_depth(self) -> None:
        """Called before a large batch: waits as if a batch that the training loop holds were one of the prefetched
        batches.

        torch's worker holds the samples of a batch and their copy, but no free memory. Without a third batch per
        worker, this class uses less memory than torch; with two batches, one is written while the other is used.
        """
        batch = self._last_task_bytes
        if self._task_bytes or batch < _LARGE_BATCH:
            return
        waited = False
        while not self._is_wanted() and self._sent(IN_FLIGHT) >= batch * max(1, self.ahead - (self._sent(HELD) > 0)):
            waited = True
            self._wait_step()
            time.sleep(0.001)
        if waited:
            self._reap(len(self._blocks))

    def _back(self, start: int, size: int) -> None:
        end = start + size
        if end <= self._backed:
            return
        first = max(start, self._backed)
        room = limits.memory_left()
        if end - first > room:
            raise StorageError(
                f"a batch needs {end - first:,} more bytes of shared memory, but {room:,} bytes are left "
                f"({limits.memory_words()}); reduce the batch size or prefetch_factor, or hold fewer batches"
            )
        try:
            os.posix_fallocate(self._ring.fd, self._ring.region_start(self._worker) + first, end - first)
        except OSError as error:
            raise StorageError(
                f"the kernel refused {end - first:,} bytes of memory for a batch ({os.strerror(error.errno or 0)}); "
                f"{room:,} bytes are left ({limits.memory_words()})",
                errno=error.errno,
            ) from None
        if start <= self._backed:
            self._backed = end

    def _find(self, size: int) -> int | None:
        borders = self._control.borders() if self._control[Control.BORDER] else []
        for start, length in self._free:
            end = start + length
            for border in borders:
                if start < border < start + size:
                    start = border
            if end - start >= size:
                return start
        return None

    def _take(self, start: int, size: int) -> None:
        at = bisect.bisect_right(self._free, (start, self._ring.region_bytes + 1)) - 1
        free_start, length = self._free[at]
        rest = []
        if start > free_start:
            rest.append((free_start, start - free_start))
        if start + size < free_start + length:
            rest.append((start + size, free_start + length - start - size))
        self._free[at : at + 1] = rest

    def _give(self, start: int, size: int) -> None:
        at = bisect.bisect_left(self._free, (start, 0))
        if at < len(self._free) and self._free[at][0] == start + size:
            size += self._free.pop(at)[1]
        if at > 0 and sum(self._free[at - 1]) == start:
            start, before = self._free.pop(at - 1)
            size += before
            at -= 1
        self._free.insert(at, (start, size))


class _Extent:
    __slots__ = ("sent", "size", "worker_holds")

    def __init__(self, size: int, worker_holds: bool = True, sent: bool = False) -> None:
        self.size, self.worker_holds, self.sent = size, worker_holds, sent

    def leave(self) -> None:
        self.worker_holds = False
