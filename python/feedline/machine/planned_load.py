# SPDX-License-Identifier: Apache-2.0
"""Calculates the resources that a planned loader needs.

    waiting = workers x prefetch x batch                 finished by workers, not yet requested
    pinned  = batches x (batch rounded up)               torch rounds page-locked memory up to powers of two
    copies  = workers x dataset                          memory that each worker writes, such as reference counts

All ranks on a machine use these amounts at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

_IN_HAND = 2  # the loop's current batch and the next one
_PIPES = 6  # a worker's file descriptors in the main process
_OTHER_FILES = 64  # file descriptors of an interpreter with torch


@dataclass(frozen=True)
class PlannedLoad:
    """A planned loader. Sizes are for one rank, in bytes; None means unknown."""

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
    """Memory needed on this machine by all ranks together, in bytes."""

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
    """Returns the memory. A batch of unknown size counts as zero bytes."""
    batch = load.batch_bytes or 0
    ahead = load.workers * load.prefetch
    held_bytes = rounded_up(batch) if load.pinned else batch
    return Need(
        waiting=load.ranks * ahead * batch,
        in_hand=load.ranks * held_bytes * (_IN_HAND if load.workers or load.pinned else 1),
        copies=load.ranks * load.workers * load.dataset_bytes,
        pinned_later=load.ranks * held_bytes * max(ahead - _IN_HAND, 0) if load.pinned else 0,
    )


def open_files_of(load: PlannedLoad) -> int:
    """Returns the number of file descriptors in the main process; torch uses one for each tensor that it transfers."""
    return load.workers * (load.prefetch * load.tensors + _PIPES) + _OTHER_FILES


def gpu_bytes_of(load: PlannedLoad) -> int:
    """Returns the GPU memory for batches: the current one and the next."""
    return _IN_HAND * (load.batch_bytes or 0)


def rounded_up(count: int) -> int:
    """Returns the number of bytes that torch page-locks for a size, which is the next power of two."""
    return 1 << (count - 1).bit_length() if count > 1 else count
