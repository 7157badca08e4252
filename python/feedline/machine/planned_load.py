# SPDX-License-Identifier: Apache-2.0
"""Calculates the resources that a loader will use, before it starts.

    waiting = workers x prefetch x batch                 finished by workers, not yet requested
    pinned  = batches x (batch rounded up)               torch rounds page-locked memory up to powers of two
    copies  = workers x dataset                          memory that each worker writes, such as reference counts

All ranks of a machine use these at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

_IN_HAND = 2  # the loop's current batch and the next one
_PIPES = 6  # a worker's file descriptors in the main process
_OTHER_FILES = 64  # file descriptors of an interpreter with torch


@dataclass(frozen=True)
class PlannedLoad:
    """A planned loader. Bytes are for one rank; None: unknown."""

    workers: int
    prefetch: int = 2
    batch_bytes: int | None = None
    dataset_bytes: int = 0  # private memory of each worker
    pinned: bool = False
    ranks: int = 1  # on this machine
    tensors: int = 2  # of a batch
    in_shared_memory: bool = True  # workers transfer batches via /dev/shm, as torch's do
    batch_size: int | None = None

    @property
    def sample_bytes(self) -> int | None:
        return self.batch_bytes // self.batch_size if self.batch_bytes and self.batch_size else None


@dataclass(frozen=True)
class Need:
    """Bytes of this machine's memory, for all ranks together."""

    waiting: int  # batches prefetched by workers
    in_hand: int  # other batches, with rounded sizes if page-locked
    copies: int
    pinned_later: int  # additional memory once torch has page-locked all waiting batches, which it never frees

    @property
    def least(self) -> int:
        return self.waiting + self.in_hand + self.copies

    @property
    def most(self) -> int:
        return self.least + self.pinned_later


def need_of(load: PlannedLoad) -> Need:
    """Returns the memory. A batch of unknown size counts as zero."""
    batch = load.batch_bytes or 0
    ahead = load.workers * load.prefetch
    kept = rounded_up(batch) if load.pinned else batch
    return Need(
        waiting=load.ranks * ahead * batch,
        in_hand=load.ranks * kept * (_IN_HAND if load.workers or load.pinned else 1),
        copies=load.ranks * load.workers * load.dataset_bytes,
        pinned_later=load.ranks * kept * max(ahead - _IN_HAND, 0) if load.pinned else 0,
    )


def open_files_of(load: PlannedLoad) -> int:
    """Returns the main process's file descriptors; torch transfers each tensor as one."""
    return load.workers * (load.prefetch * load.tensors + _PIPES) + _OTHER_FILES


def gpu_bytes_of(load: PlannedLoad) -> int:
    """Returns the GPU memory for batches: the current one and the next."""
    return _IN_HAND * (load.batch_bytes or 0)


def rounded_up(count: int) -> int:
    """Returns the number of bytes that torch page-locks for a size: the next power of two."""
    return 1 << (count - 1).bit_length() if count > 1 else count
