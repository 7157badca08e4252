# SPDX-License-Identifier: Apache-2.0
"""The training process's side of a ring, which opens and releases the blocks of messages."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

import numpy as np

from .ring import HEADER, HELD, PUNCHED, REUSABLE, Block, Control, Ring, make_block

if TYPE_CHECKING:
    from .page_lock import PageLock


class RingReader:
    """The consumer's side. Any thread may release a block, even long after the workers have ended."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._pid = os.getpid()
        self._regions: list[mmap.mmap | None] = [None] * ring.workers
        self._controls = [ring.control(i) for i in range(ring.workers)]
        self._closed = False
        self.live: dict[tuple[int, int], int] = {}  # (worker, start) -> size
        self.page_lock: PageLock | None = None

    def open(self, worker: int, start: int, size: int) -> Block:
        """Returns the payload of a received block. The block is freed when no array or tensor uses the payload any
        longer.
        """
        region = self.region(worker)
        region[start] = HELD
        self.live[worker, start] = size
        if self.page_lock is not None and self.page_lock.crosses(worker, start, size):
            return self._moved_out(self.page_lock, worker, start, size)

        def released() -> None:
            self.release(worker, start, size)

        return make_block(region, start + HEADER, size - HEADER, released)

    @property
    def closed(self) -> bool:
        return self._closed

    def region(self, worker: int) -> mmap.mmap:
        region = self._regions[worker]
        if region is None:
            region = self._regions[worker] = self._ring.map_region(worker)
        return region

    def _moved_out(self, page_lock: PageLock, worker: int, start: int, size: int) -> Block:
        """Returns a copy of a block that crosses a border unknown to the worker, because CUDA rejects copies from
        partly locked memory.
        """
        payload = np.frombuffer(self.region(worker), dtype=np.uint8, count=size - HEADER, offset=start + HEADER)
        block = payload.copy().view(Block)
        with page_lock.guard:
            self.give_back(worker, start, size)
        return block

    def release(self, worker: int, start: int, size: int) -> None:
        if os.getpid() != self._pid:  # in a forked child the block belongs to the parent
            return
        if self.page_lock is None:
            self.give_back(worker, start, size)
        else:
            self.page_lock.release(worker, start, size)

    def give_back(self, worker: int, start: int, size: int) -> None:
        """Frees an unused block, so that the worker or the kernel can reuse it."""
        self.live.pop((worker, start), None)
        if self._closed or start + size > self._controls[worker][Control.KEEP]:
            first = start if self.page_lock is None else max(start, self.page_lock.end(worker))
            if first < start + size:
                self._ring.punch(worker, first, start + size - first)
                if first > start:
                    self.region(worker)[start] = PUNCHED
                return
        self.region(worker)[start] = REUSABLE

    def occupied(self, worker: int) -> list[tuple[int, int]]:
        return [(start, size) for (owner, start), size in list(self.live.items()) if owner == worker]

    def bytes_held(self) -> int:
        return sum(self.live.values()) - (0 if self.page_lock is None else self.page_lock.waiting_bytes)

    def close(self) -> None:
        """Called after all workers have ended: returns all memory to the kernel except blocks that the user holds."""
        if self._closed or os.getpid() != self._pid:
            return
        if self.page_lock is None:
            self._close()
        else:
            with self.page_lock.guard:
                self._close()
            self.page_lock.settle()

    def _close(self) -> None:
        self._closed = True
        for worker in range(self._ring.workers):
            at = 0 if self.page_lock is None else self.page_lock.end(worker)
            for start, size in sorted(self.occupied(worker)):
                if start > at:
                    self._ring.punch(worker, at, start - at)
                at = max(at, start + size)
            self._ring.punch(worker, at, self._ring.region_bytes - at)

    def give_back_unlocked(self, worker: int, size: int) -> None:
        """Called after closing: frees the first `size` bytes of a region, which were page-locked and are unused."""
        self._ring.punch(worker, 0, size)
