# SPDX-License-Identifier: Apache-2.0
"""Page-locks the reused part of a ring, so that a GPU reads batches directly from it.

    a region:  | locked | locked later, twice as much | freed after use, never locked |
                        border                        border

Without page-locking, torch copies every batch into its own page-locked memory. Page-locking is subject to these
constraints:

- A copy to the GPU may still read a tensor that has been released; torch only waits for such copies in its own memory.
  Released blocks are therefore reused only when every device has finished the work that was queued at the release.
  `next()` calls `settle`, which records and checks events without waiting for a GPU, so a hanging GPU blocks neither
  `close` nor the interpreter's exit.
- If a page of a locked range is punched out of the file, the GPU continues to read the old page. Nothing below a
  region's last border is therefore punched out before the range is unlocked.
- CUDA rejects a copy from memory that is partly locked, or that was locked by two calls. Blocks therefore never cross a
  border: workers know the borders, borders are set between blocks, and the reader moves blocks that were written
  earlier.

If the process ends before the memory is unlocked, the kernel unlocks it.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque

import numpy as np
import torch

from ..._engine import GpuMark, PageLocks
from ...errors import ConfigError, Error
from .ring import PAGE, Control, Ring
from .ring_reader import RingReader

_log = logging.getLogger("feedline")
_holding: set[PageLock] = set()  # locks in use, so that no region is unmapped before

_Extent = tuple[int, int, int]  # (worker, start, size)


class PageLock:
    """The page-locked parts of a ring, and the released blocks that a GPU may still read. Used only in the training
    process.
    """

    def __init__(self, ring: Ring, reader: RingReader) -> None:
        self.guard = threading.RLock()  # reentrant: a garbage collection may release a block anywhere
        self.waiting_bytes = 0  # size of released blocks that a GPU may still read
        self._ring, self._reader = ring, reader
        self._pid = os.getpid()
        self._locks: PageLocks | None = None  # once torch has initialised CUDA
        self._controls = [ring.control(i) for i in range(ring.workers)]
        self._borders: list[list[int]] = [[] for _ in range(ring.workers)]
        self._dropped: list[_Extent] = []
        self._marked: deque[tuple[GpuMark, list[_Extent]]] = deque()
        self._settling = False
        self._refused = False
        self._failed = False
        # A block that the loop releases is marked one step later, and is free after another step if the GPU lags by
        # one. With several workers, one batch of each suffices for that.
        for control in self._controls:
            control[Control.GPU] = 2 if ring.workers == 1 else 1

    def end(self, worker: int) -> int:
        """Returns the end of the part of a region that is locked or being locked."""
        borders = self._borders[worker]
        return borders[-1] if borders else 0

    def crosses(self, worker: int, start: int, size: int) -> bool:
        return any(start < border < start + size for border in self._borders[worker])

    # -- locking

    def lock(self, worker: int) -> str | None:
        """Locks more of a region if it has grown enough. If locking is refused, returns the reason, but only once."""
        keep = self._controls[worker][Control.KEEP] // PAGE * PAGE
        # Each border may waste memory and each lock takes long, so both are few.
        if self._refused or keep == 0 or keep < 2 * self.end(worker) or len(self._borders[worker]) == Control.BORDERS:
            return None
        if not torch.cuda.is_initialized() or torch.cuda.is_current_stream_capturing():
            return None
        with self.guard:
            begin = self.end(worker)
            end = self._between_blocks(worker, keep)
            if end <= begin or self._reader.closed or self._failed:
                return None
            try:
                if self._locks is None:
                    self._locks = PageLocks.open()
                # Creating a context takes hundreds of megabytes of a GPU that others may use, so only an existing one
                # is used.
                if self._locks.has_gpu(torch.cuda.current_device()):
                    self._lock(self._locks, worker, begin, end)
            except (Error, OSError) as error:
                self._refused = True
                for control in self._controls:
                    control[Control.GPU] = 0
                why = f"page-locking {end - begin:,} bytes failed ({error})"
                _log.warning("%s: batches are copied to pinned memory, as torch does", why)
                return why
        return None

    def _between_blocks(self, worker: int, end: int) -> int:
        for start, size in sorted(self._reader.occupied(worker), reverse=True):
            if start < end < start + size:
                return start
        return end

    def _lock(self, locks: PageLocks, worker: int, begin: int, end: int) -> None:
        locks.check_room(end - begin)
        os.posix_fallocate(self._ring.fd, self._ring.region_start(worker) + begin, end - begin)
        word = Control.BORDER + len(self._borders[worker])
        self._controls[worker][word] = end
        self._borders[worker].append(end)
        try:
            locks.lock(self._address(worker) + begin, end - begin)
        except Error:
            self._borders[worker].pop()
            self._controls[worker][word] = 0
            raise
        _holding.add(self)

    def _address(self, worker: int) -> int:
        return np.frombuffer(self._reader.region(worker), dtype=np.uint8, count=1).ctypes.data

    # -- releasing

    def release(self, worker: int, start: int, size: int) -> None:
        """Called when the last reference to a block is dropped."""
        with self.guard:
            # A block that was never opened was never passed to a GPU.
            if start < self.end(worker) and (worker, start) in self._reader.live:
                self._dropped.append((worker, start, size))
                self.waiting_bytes += size
            else:
                self._reader.give_back(worker, start, size)
        if self._reader.closed:
            self.settle()

    def settle(self) -> None:
        """Frees blocks that no GPU reads any longer, of this loader and of closed loaders."""
        if self._dropped or self._marked or self._reader.closed:
            self._settle()
        for other in list(_holding):
            if other is not self and other._reader.closed:
                other._settle()

    def _settle(self) -> None:
        if os.getpid() != self._pid or sys.is_finalizing() or torch.cuda.is_current_stream_capturing():
            return
        with self.guard:
            if self._settling or self._failed:
                return
            self._settling = True
            try:
                self._mark()
                while self._marked and self._marked[0][0].is_past():
                    for extent in self._marked.popleft()[1]:
                        self.waiting_bytes -= extent[2]
                        self._reader.give_back(*extent)
                if self._reader.closed:
                    self._unlock()
            except Error as error:
                # It is unknown what the GPU still reads: waiting blocks are never reused or unlocked.
                self._failed = True
                if self._locks is None or not self._locks.has_ended:
                    _log.warning("%s: page-locked batches that a GPU may still read are not reused", str(error))
            finally:
                self._settling = False

    def _mark(self) -> None:
        if self._dropped and self._locks is not None:
            dropped, self._dropped = self._dropped, []
            mark = self._locks.mark()
            if mark is None:
                self._dropped += dropped
            else:
                self._marked.append((mark, dropped))

    def _unlock(self) -> None:
        """After the loader is closed, unlocks every region without live blocks."""
        for worker, borders in enumerate(self._borders):
            end = self.end(worker)
            if self._locks is None or end == 0 or any(start < end for start, _ in self._reader.occupied(worker)):
                continue
            address = self._address(worker)
            for begin in [0, *borders[:-1]]:
                self._locks.unlock(address + begin)
            borders.clear()
            self._reader.give_back_unlocked(worker, end)
        if not any(self._borders):
            _holding.discard(self)
            self._reader.page_lock = None  # breaks the reference cycle


def page_lock_for(ring: Ring, reader: RingReader) -> tuple[PageLock | None, str | None]:
    """Returns a page lock for the ring, with nothing locked yet. If there is a GPU but locking is not possible, returns
    None and the reason.
    """
    if not torch.cuda.is_available():
        return None, None
    try:
        PageLocks.check()
        return PageLock(ring, reader), None
    except ConfigError as error:
        return None, str(error)


def explain(refusal: str | None, has_ring: bool) -> str:
    """Describes in one line how a loader pins batches. `refusal`: the reason why its ring could not be page-locked, if
    any.
    """
    if not getattr(torch, "accelerator", torch.cuda).is_available():  # torch before 2.6 has no accelerator
        return "nothing is pinned: there is no accelerator"
    if not torch.cuda.is_available():
        return "torch copies each batch once: page-locking the ring requires CUDA"
    if not has_ring:
        return "torch copies each batch once: batches are not passed through a ring"
    why = refusal
    if why is None:
        try:
            PageLocks.check()
            return (
                "no copy: the reused part of the ring is page-locked at the first batch; torch copies batches "
                "outside of it"
            )
        except ConfigError as error:
            why = str(error)
    return f"torch copies each batch once: {why}"
