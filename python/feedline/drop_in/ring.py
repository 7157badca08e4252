# SPDX-License-Identifier: Apache-2.0
"""The memory that worker processes hand batches over in: one memfd per loader.

The file is address space, not memory: as long as all workers could ever need, and sealed against shrinking. Only the
parts in use have pages, asked for by fallocate, so that a lack of memory is an error with numbers in place of SIGBUS.

    0              control page: kWords 64-bit words per worker (see `Control`)
    CONTROL + i*R  region of worker i: blocks, page-aligned

    block:  | state (1 byte), 63 bytes unused | payload ... |

Worker i alone allocates in region i; the consumer frees by one store to the state byte, or by punching it out with the
rest of the block. So nothing is locked, and a process that dies at any point leaves nothing behind that another could
wait for. What is freed above the region's keep line goes back to the kernel at once; what lies below is used again
while it is warm, and with a GPU is page-locked: see page_lock.py. Nothing is ever punched out of what is page-locked.

The state says which of the two happened to a block. The worker cannot tell by the keep line: it may have raised that
since, and what it takes for pages that are there would be holes, or still be punched out under what it writes. Asking
for the pages of a hole waits for a punch that is under way: the kernel does one after the other.
"""

from __future__ import annotations

import bisect
import ctypes
import fcntl
import mmap
import os
import time
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import StorageError
from . import limits

if TYPE_CHECKING:
    from .page_lock import PageLock

HEADER = 64  # bytes before a block's payload: a cache line, so that payloads are aligned for every vector unit
PAGE = mmap.PAGESIZE
PUNCHED, IN_FLIGHT, HELD, KEPT = range(4)  # of a block; free with and without pages. A punched hole reads as 0

_LARGE_BATCH = 8 << 20  # bytes: making it takes milliseconds, and as many of it as of others would be much memory
_F_ADD_SEALS, _SEALS = 1033, 0x1 | 0x2 | 0x4  # no further seals, no shrinking, no growing
_PUNCH = 0x1 | 0x2  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_LARGEST_FILE = 8 << 40  # all regions together; 47 bits of addresses hold a dozen such loaders
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


class Control:
    """What a worker tells about itself without sending anything: 64-bit words in shared memory."""

    WORDS = 16
    SAMPLES, INDEX, STAGE, RSS, KEEP, STOP, FIRST_TASK, READY, LOADED, WANTED, GPU, BORDER = range(12)
    BORDERS = WORDS - BORDER  # words from BORDER on: offsets that no block may lie across, ascending, 0: none

    def __init__(self, memory: mmap.mmap, worker: int) -> None:
        self._words = memoryview(memory).cast("q")[worker * self.WORDS : (worker + 1) * self.WORDS]

    def __getitem__(self, word: int) -> int:
        return self._words[word]

    def __setitem__(self, word: int, value: int) -> None:
        self._words[word] = value

    def borders(self) -> list[int]:
        return [border for border in self._words[self.BORDER :] if border]


class Block(np.ndarray):
    """A block's payload. `released` runs once, when the last array or tensor on it is gone."""

    released: Callable[[], None] | None = None

    def __del__(self) -> None:
        if self.released is not None:
            self.released()


def _make_block(memory: mmap.mmap, start: int, size: int, released: Callable[[], None]) -> Block:
    block = np.frombuffer(memory, dtype=np.uint8, count=size, offset=start).view(Block)
    block.released = released
    return block


class Ring:
    """The file and its layout; made by the consumer, passed to every worker."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.control_bytes = _round_up(workers * Control.WORDS * 8)
        self.region_bytes = _region_bytes(workers)
        self.fd = os.memfd_create("feedline", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            while True:
                try:
                    os.ftruncate(self.fd, self.control_bytes + workers * self.region_bytes)
                    break
                except OSError:  # RLIMIT_FSIZE
                    if self.region_bytes <= 64 << 20:
                        raise
                    self.region_bytes //= 2
            fcntl.fcntl(self.fd, _F_ADD_SEALS, _SEALS)
            os.posix_fallocate(self.fd, 0, self.control_bytes)
            self.control_memory = mmap.mmap(self.fd, self.control_bytes)
        except BaseException:
            os.close(self.fd)
            raise
        self._close = weakref.finalize(self, os.close, self.fd)

    def control(self, worker: int) -> Control:
        return Control(self.control_memory, worker)

    def region_start(self, worker: int) -> int:
        return self.control_bytes + worker * self.region_bytes

    def map_region(self, worker: int) -> mmap.mmap:
        try:
            return mmap.mmap(self.fd, self.region_bytes, offset=self.region_start(worker))
        except OSError as error:
            raise StorageError(
                f"cannot reserve {self.region_bytes:,} bytes of address space for worker {worker}'s batches: "
                f"{os.strerror(error.errno or 0)}; `ulimit -v` may be set",
                errno=error.errno,
            ) from None

    def punch(self, worker: int, start: int, size: int) -> None:
        """Gives the pages of a range back; reading it gives zeros afterwards."""
        punch_hole(self.fd, self.region_start(worker) + start, size)

    def close(self) -> None:
        self._close()

    def __getstate__(self) -> dict[str, Any]:
        from multiprocessing import reduction

        return {
            "workers": self.workers,
            "control_bytes": self.control_bytes,
            "region_bytes": self.region_bytes,
            "fd": reduction.DupFd(self.fd),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.fd = state["fd"].detach()
        self.control_memory = mmap.mmap(self.fd, self.control_bytes)
        self._close = weakref.finalize(self, os.close, self.fd)


class RingWriter:
    """Worker `worker`'s allocator. `wait_step` is called while the budget makes it wait, and may raise to stop."""

    def __init__(
        self,
        ring: Ring,
        worker: int,
        budget: int,
        ahead: int,
        occupied: Iterable[tuple[int, int]] = (),
        wait_step: Callable[[], None] = lambda: None,
    ) -> None:
        self._ring, self._worker, self._budget, self._ahead = ring, worker, budget, ahead
        self._control = ring.control(worker)
        self._memory = ring.map_region(worker)
        self.address = np.frombuffer(self._memory, dtype=np.uint8, count=1).ctypes.data
        self._wait_step = wait_step
        self.task = -1  # the one that memory is asked for
        self._blocks: dict[int, _Extent] = {}  # start -> what is not free, as far as known
        self._free = [(0, ring.region_bytes)]  # sorted, never adjacent
        self._backed = 0  # pages below this offset are there
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
        """A block of `payload` bytes. Raises StorageError, with numbers, where memory is short."""
        size = _round_up(payload + HEADER)
        self._reap(32)
        self._keep_budget(size)
        self._keep_depth()
        start = self._find(size)
        self._since_scan += 1
        # Before growing, look at everything; not every time, or holding n batches would cost n * n looks.
        if start is None or (start + size > self._backed and self._since_scan > len(self._blocks) // 16):
            self._since_scan = 0
            self._reap(len(self._blocks))
            start = self._find(size)
        if start is None:
            raise StorageError(
                f"a batch needs {size:,} bytes, and {sum(b.size for b in self._blocks.values()):,} of the "
                f"{self._ring.region_bytes:,} bytes of worker {self._worker}'s address space are in use"
            )
        self._back(start, size)
        self._take(start, size)
        extent = self._blocks[start] = _Extent(size)
        self._unsent.add(start)
        self._memory[start] = KEPT
        self._task_bytes += size
        return _make_block(self._memory, start + HEADER, payload, extent.leave)

    def find(self, address: int, nbytes: int) -> int | None:
        """The start of the unsent block that holds `nbytes` at `address`, or None."""
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
        """Marks a block as on its way; its size with header. The consumer owns it once the message arrives."""
        extent = self._blocks[start]
        extent.sent = True
        self._unsent.discard(start)
        self._sent_bytes += extent.size
        self._memory[start] = IN_FLIGHT
        return extent.size

    def end_task(self) -> None:
        """Between two batches: learns how much of the region is worth keeping warm."""
        # Of small batches there may be as many as are asked of this worker, and the one that the training loop holds;
        # and those that a GPU still reads.
        batches = self._ahead + (self._task_bytes < _LARGE_BATCH)
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
            if extent.sent and state not in (PUNCHED, KEPT):
                continue
            del self._blocks[start]
            self._unsent.discard(start)
            self._sent_bytes -= extent.size if extent.sent else 0
            self._give(start, extent.size)
            if state == PUNCHED:
                self._backed = min(self._backed, start)

    def _is_wanted(self) -> bool:
        """Whether the loop waits for the batch that is being made. Later ones may wait already where this one had bad
        samples or its first worker died; those are not taken before it.
        """
        return self._control[Control.WANTED] == self.task + 1

    def _sent(self, state: int) -> int:
        return sum(e.size for start, e in self._blocks.items() if e.sent and self._memory[start] == state)

    def _keep_budget(self, size: int) -> None:
        # Where nothing waits, one batch always passes: the consumer may be about to ask for this very one.
        while True:
            if self._sent_bytes + self._task_bytes + size <= self._budget:
                return
            in_flight = self._sent(IN_FLIGHT)
            if in_flight == 0 or self._is_wanted() or in_flight + self._task_bytes + size <= self._budget:
                return
            self._wait_step()
            time.sleep(0.001)

    def _keep_depth(self) -> None:
        """Before a large batch: one that the training loop holds counts as one of those that are made ahead.

        torch's worker holds the samples of the batch that it makes and their copy, but no free memory. Without a third
        batch per worker we stay below that, and with two of them one is always made while another is used.
        """
        batch = self._last_task_bytes
        if self._task_bytes or batch < _LARGE_BATCH:
            return
        waited = False
        while not self._is_wanted() and self._sent(IN_FLIGHT) >= batch * max(1, self._ahead - (self._sent(HELD) > 0)):
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
                f"a batch needs {end - first:,} bytes more of shared memory, and {room:,} bytes are left "
                f"({limits.memory_words()}); make batches or prefetch_factor smaller, or keep fewer batches"
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


class RingReader:
    """The consumer's side. Any thread may let go of a block, also long after the workers are gone."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._pid = os.getpid()
        self._regions: list[mmap.mmap | None] = [None] * ring.workers
        self._controls = [ring.control(i) for i in range(ring.workers)]
        self._closed = False
        self.live: dict[tuple[int, int], int] = {}  # (worker, start) -> size
        self.page_lock: PageLock | None = None

    def open(self, worker: int, start: int, size: int) -> Block:
        """The payload of a block that a message brought. The block is free again when nothing lies on it any more."""
        region = self.region(worker)
        region[start] = HELD
        self.live[worker, start] = size
        if self.page_lock is not None and self.page_lock.crosses(worker, start, size):
            return self._moved_out(self.page_lock, worker, start, size)

        def released() -> None:
            self.release(worker, start, size)

        return _make_block(region, start + HEADER, size - HEADER, released)

    @property
    def closed(self) -> bool:
        return self._closed

    def region(self, worker: int) -> mmap.mmap:
        region = self._regions[worker]
        if region is None:
            region = self._regions[worker] = self._ring.map_region(worker)
        return region

    def _moved_out(self, page_lock: PageLock, worker: int, start: int, size: int) -> Block:
        """A block that the worker made before it knew of a border: CUDA refuses to copy what is locked in part."""
        payload = np.frombuffer(self.region(worker), dtype=np.uint8, count=size - HEADER, offset=start + HEADER)
        block = payload.copy().view(Block)
        with page_lock.guard:
            self.give_back(worker, start, size)
        return block

    def release(self, worker: int, start: int, size: int) -> None:
        if os.getpid() != self._pid:  # a forked child's copy: the block is the parent's
            return
        if self.page_lock is None:
            self.give_back(worker, start, size)
        else:
            self.page_lock.release(worker, start, size)

    def give_back(self, worker: int, start: int, size: int) -> None:
        """Lets the worker, or the kernel, have a block that nobody reads any more."""
        self.live.pop((worker, start), None)
        if self._closed or start + size > self._controls[worker][Control.KEEP]:
            first = start if self.page_lock is None else max(start, self.page_lock.end(worker))
            if first < start + size:
                self._ring.punch(worker, first, start + size - first)
                if first > start:
                    self.region(worker)[start] = PUNCHED
                return
        self.region(worker)[start] = KEPT

    def occupied(self, worker: int) -> list[tuple[int, int]]:
        return [(start, size) for (owner, start), size in list(self.live.items()) if owner == worker]

    def bytes_held(self) -> int:
        return sum(self.live.values()) - (0 if self.page_lock is None else self.page_lock.waiting_bytes)

    def close(self) -> None:
        """No worker writes any more: everything but what the user holds goes back to the kernel."""
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
        """After closing: the first `size` bytes of a region, which have been page-locked and hold nothing any more."""
        self._ring.punch(worker, 0, size)


def punch_hole(fd: int, start: int, size: int) -> None:
    """Gives the whole pages of a range of a file in memory back to the kernel."""
    _libc.fallocate(fd, _PUNCH, start, size)


def _round_up(size: int) -> int:
    return -(-size // PAGE) * PAGE


def _region_bytes(workers: int) -> int:
    # No worker can use more than the machine's memory.
    region = 1 << max(26, (limits.physical_memory() - 1).bit_length())
    while region > 1 << 26 and (
        region * workers > _LARGEST_FILE or region * (workers + 1) > limits.address_space() // 2
    ):
        region //= 2
    return region
