# SPDX-License-Identifier: Apache-2.0
"""The memory through which worker processes pass batches: one memfd per loader.

The file only reserves address space, as much as all workers could ever need, and is sealed against shrinking. Only the
parts in use have pages, which are reserved by fallocate, so that a lack of memory raises an error with numbers instead
of SIGBUS.

    0              control page: kWords 64-bit words per worker (see `Control`)
    CONTROL + i*R  region of worker i: blocks, page-aligned

    block:  | state (1 byte), 63 bytes unused | payload ... |

Only worker i allocates in region i. The consumer frees a block with one store to the state byte, or by punching the
block out of the file. There are no locks, so no process can wait for a process that has died. Each region is divided at
an offset, the keep line. Blocks above it are returned to the kernel when they are freed. Blocks below it are reused
while they are in the cache, and page-locked if there is a GPU: see page_lock.py. Page-locked blocks are never punched
out of the file.

The state byte shows how a block was freed. The worker cannot infer this from the block's position, because it may have
raised the keep line since then: pages that the worker considers present could be holes, or could still be punched out
while the worker writes. Allocating the pages of a hole waits for a running punch, because the kernel serialises both
operations.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...errors import StorageError
from ...machine import limits

HEADER = 64  # bytes before a block's payload: a cache line, so that payloads are aligned for every vector unit
PAGE = mmap.PAGESIZE
PUNCHED, IN_FLIGHT, HELD, REUSABLE = range(4)  # states of a block: free without pages (a hole reads as 0), sent, in
# use, free with pages

ELSEWHERE = -1  # in Control.WANTED: the loop waits for another loader's batch from this process

_F_ADD_SEALS, _SEALS = 1033, 0x1 | 0x2 | 0x4  # no further seals, no shrinking, no growing
_PUNCH = 0x1 | 0x2  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_LARGEST_FILE = 8 << 40  # all regions together; 47 bits of address space suffice for a dozen such loaders
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


class Control:
    """The status of a worker in shared memory, as 64-bit words."""

    WORDS = 16
    SAMPLES, INDEX, STAGE, RSS, KEEP, STOP, FIRST_TASK, READY, LOADED, WANTED, GPU, BORDER = range(12)
    BORDERS = WORDS - BORDER  # words from BORDER on: ascending offsets that no block may cross; 0 if unused

    def __init__(self, memory: mmap.mmap, worker: int) -> None:
        self._words = memoryview(memory).cast("q")[worker * self.WORDS : (worker + 1) * self.WORDS]

    def __getitem__(self, word: int) -> int:
        return self._words[word]

    def __setitem__(self, word: int, value: int) -> None:
        self._words[word] = value

    def borders(self) -> list[int]:
        return [border for border in self._words[self.BORDER :] if border]


class Block(np.ndarray):
    """A block's payload. The payload of a block. `released` is called once, when the last array or tensor that uses the
    payload is dropped.
    """

    released: Callable[[], None] | None = None

    def __del__(self) -> None:
        if self.released is not None:
            self.released()


def make_block(memory: mmap.mmap, start: int, size: int, released: Callable[[], None]) -> Block:
    block = np.frombuffer(memory, dtype=np.uint8, count=size, offset=start).view(Block)
    block.released = released
    return block


class Ring:
    """The file and its layout, created by the consumer and passed to every worker."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.control_bytes = round_up(workers * Control.WORDS * 8)
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
                f"{os.strerror(error.errno or 0)}; check `ulimit -v`",
                errno=error.errno,
            ) from None

    def punch(self, worker: int, start: int, size: int) -> None:
        """Returns the pages of a range to the kernel. The range then reads as zeros."""
        punch_hole(self.fd, self.region_start(worker) + start, size)

    def close(self) -> None:
        self._close()

    def layout(self) -> dict[str, int]:
        """The data that a process needs in addition to the file descriptor."""
        return {"workers": self.workers, "control_bytes": self.control_bytes, "region_bytes": self.region_bytes}

    @classmethod
    def attached(cls, layout: Mapping[str, int], fd: int) -> Ring:
        """Returns a ring in another process, which has received `fd`. The ring then owns the descriptor."""
        ring = cls.__new__(cls)
        ring._attach(layout, fd)
        return ring

    def __getstate__(self) -> dict[str, Any]:
        from multiprocessing import reduction

        return {**self.layout(), "fd": reduction.DupFd(self.fd)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._attach(state, state.pop("fd").detach())

    def _attach(self, layout: Mapping[str, int], fd: int) -> None:
        self.__dict__.update(layout)
        self.fd = fd
        self.control_memory = mmap.mmap(self.fd, self.control_bytes)
        self._close = weakref.finalize(self, os.close, self.fd)


def punch_hole(fd: int, start: int, size: int) -> None:
    """Returns the whole pages of a range of an in-memory file to the kernel."""
    _libc.fallocate(fd, _PUNCH, start, size)


def round_up(size: int) -> int:
    return -(-size // PAGE) * PAGE


def _region_bytes(workers: int) -> int:
    # No worker can use more than the machine's memory.
    region = 1 << max(26, (limits.physical_memory() - 1).bit_length())
    while region > 1 << 26 and (
        region * workers > _LARGEST_FILE or region * (workers + 1) > limits.address_space() // 2
    ):
        region //= 2
    return region
