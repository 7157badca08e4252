# SPDX-License-Identifier: Apache-2.0
"""What a loader will take of a machine, by arithmetic, before it starts.

    waiting = workers x prefetch x batch                 made by workers, and not yet asked for
    pinned  = batches x (batch rounded up)               torch keeps page-locked memory in powers of two
    copies  = workers x dataset                          what each worker writes to, counted references among it

All ranks of a machine take it at once.
"""

from __future__ import annotations

from dataclasses import dataclass

_IN_HAND = 2  # one that the loop works on, one that is on its way to it
_PIPES = 6  # descriptors of a worker in the main process
_OTHER_FILES = 64  # what an interpreter with torch has open by itself


@dataclass(frozen=True)
class PlannedLoad:
    """A loader that is to be. Bytes of one rank; None: not known."""

    workers: int
    prefetch: int = 2
    batch_bytes: int | None = None
    dataset_bytes: int = 0  # that each worker comes to hold for itself
    pinned: bool = False
    ranks: int = 1  # of this machine
    tensors: int = 2  # of a batch
    in_shared_memory: bool = True  # workers hand over through /dev/shm, as torch's do
    batch_size: int | None = None

    @property
    def sample_bytes(self) -> int | None:
        return self.batch_bytes // self.batch_size if self.batch_bytes and self.batch_size else None


@dataclass(frozen=True)
class Need:
    """Bytes of this machine's memory, of all ranks together."""

    waiting: int  # what workers have made ahead
    in_hand: int  # batches beside them, page-locked ones in their rounded sizes
    copies: int
    pinned_later: int  # more, once torch has page-locked as many batches as can wait: it gives none back

    @property
    def least(self) -> int:
        return self.waiting + self.in_hand + self.copies

    @property
    def most(self) -> int:
        return self.least + self.pinned_later


def need_of(load: PlannedLoad) -> Need:
    """A batch of unknown size counts as nothing."""
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
    """Descriptors of the main process: torch hands tensors over as one each."""
    return load.workers * (load.prefetch * load.tensors + _PIPES) + _OTHER_FILES


def gpu_bytes_of(load: PlannedLoad) -> int:
    """On the GPU, of batches alone: the one that is worked on, and the next."""
    return _IN_HAND * (load.batch_bytes or 0)


def rounded_up(count: int) -> int:
    """The power of two that torch page-locks for so many bytes."""
    return 1 << (count - 1).bit_length() if count > 1 else count
