# SPDX-License-Identifier: Apache-2.0
"""The order of an epoch as the user's samplers give it, held in less memory, and open to refills."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data.sampler import BatchSampler, RandomSampler

_CHUNK = 1 << 16  # indices that are Python objects at a time


def lean_iterator(sampler: Any, iterator: Iterator[Any]) -> Iterator[Any]:
    """`iterator`, of `sampler`, or one that gives the same with 8 bytes a sample instead of 44.

    torch's RandomSampler turns its permutation into a list of Python integers. Only exact types are replaced: their
    generators draw nothing before the first `next`, so leaving `iterator` unused changes nothing.
    """
    if type(sampler) is RandomSampler and not sampler.replacement:
        return _permutations(sampler)
    if type(sampler) is BatchSampler and type(sampler.sampler) is RandomSampler and not sampler.sampler.replacement:
        return _batches(_permutations(sampler.sampler), sampler.batch_size, sampler.drop_last)
    return iterator


def _permutations(sampler: RandomSampler) -> Iterator[int]:
    count = len(sampler.data_source)  # type: ignore[arg-type]
    generator = sampler.generator
    if generator is None:
        generator = torch.Generator()
        generator.manual_seed(int(torch.empty((), dtype=torch.int64).random_().item()))
    for _ in range(sampler.num_samples // count):
        yield from _in_chunks(torch.randperm(count, generator=generator))
    # Drawn also when nothing of it is used, as the generator must end where torch's does.
    yield from _in_chunks(torch.randperm(count, generator=generator)[: sampler.num_samples % count])


def _in_chunks(order: torch.Tensor) -> Iterator[int]:
    for start in range(0, len(order), _CHUNK):
        yield from order[start : start + _CHUNK].tolist()


def _batches(indices: Iterator[int], size: int, drop_last: bool) -> Iterator[list[int]]:
    while batch := list(itertools.islice(indices, size)):
        if len(batch) == size or not drop_last:
            yield batch


class RefillOrder:
    """on_error="skip": a bad sample's place is taken by the last sample of the order that no refill has used.

    The order then ends one sample earlier (docs/decisions/0003). Refills are handed out in batch order, so they depend
    on which samples are bad and never on timing. With drop_last the samples that would be dropped are used first.
    """

    def __init__(self, batch_sampler: Any, iterator: Iterator[Any], end: int | None = None) -> None:
        self.drop_last = False
        if type(batch_sampler) is BatchSampler:
            self.drop_last = batch_sampler.drop_last
            # The iterator was only made, not advanced, and BatchSampler's draws nothing before that.
            self._flat = list(batch_sampler.sampler)
            self._starts = list(range(0, len(self._flat), batch_sampler.batch_size)) + [len(self._flat)]
            self._full = batch_sampler.batch_size
        else:
            batches = [list(batch) for batch in iterator]
            self._flat = list(itertools.chain.from_iterable(batches))
            self._starts = [0, *itertools.accumulate(map(len, batches))]
            self._full = 0
        self.end = len(self._flat) if end is None else end
        self._next = 0

    def __iter__(self) -> RefillOrder:
        return self

    def __next__(self) -> list[Any]:
        batch = self.batch(self._next)
        if not batch:
            raise StopIteration
        self._next += 1
        return batch

    def batch(self, number: int) -> list[Any]:
        """Batch `number` as far as the order reaches now; empty behind its end."""
        if number + 1 >= len(self._starts):
            return []
        batch = self._flat[self._starts[number] : min(self._starts[number + 1], self.end)]
        return [] if self.drop_last and len(batch) < self._full else batch

    def refill(self, number: int) -> list[Any]:
        """One sample for batch `number`, or none when all behind it are used."""
        if self.end <= self._starts[min(number + 1, len(self._starts) - 1)]:
            return []
        self.end -= 1
        return [self._flat[self.end]]
