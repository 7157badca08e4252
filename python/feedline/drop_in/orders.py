# SPDX-License-Identifier: Apache-2.0
"""The order of an epoch as the user's samplers give it, held in less memory, and open to refills."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data.distributed import DistributedSampler
from torch.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

from ..samplers.distributed import DistributedSampler as ExactSampler

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


def tensor_iterator(sampler: Any, iterator: Iterator[Any]) -> Iterator[Any]:
    """As lean_iterator, with the indices of a batch as one int64 tensor where that saves making integers of them."""
    if type(sampler) is BatchSampler and type(sampler.batch_size) is int:
        inner = sampler.sampler
        if type(inner) is SequentialSampler:
            return _tensor_batches(iter([torch.arange(len(inner))]), sampler)
        if type(inner) is RandomSampler and not inner.replacement and inner.num_samples <= len(inner.data_source):  # type: ignore[arg-type]
            return _tensor_batches(_orders(inner), sampler)
    return lean_iterator(sampler, iterator)


def _tensor_batches(orders: Iterator[torch.Tensor], sampler: BatchSampler) -> Iterator[torch.Tensor]:
    """Batches of the first of `orders`; what may follow is nothing but draws from the generator."""
    order = next(orders)
    whole, rest = divmod(order.numel(), sampler.batch_size)
    batches = order.split(sampler.batch_size)
    yield from batches[:whole]
    collections.deque(orders, maxlen=0)  # torch finds the end by asking for more, before the last batch if it is short
    if rest and not sampler.drop_last:
        yield batches[whole]


def is_unique(sampler: Any) -> bool:
    """Whether no index comes twice in an epoch, as far as exact types tell."""
    inner = sampler.sampler if type(sampler) is BatchSampler else sampler
    if type(inner) is RandomSampler:
        return not inner.replacement and inner.num_samples <= len(inner.data_source)  # type: ignore[arg-type]
    return type(inner) in (SequentialSampler, DistributedSampler, ExactSampler)


def _permutations(sampler: RandomSampler) -> Iterator[int]:
    for order in _orders(sampler):
        yield from _in_chunks(order)


def _orders(sampler: RandomSampler) -> Iterator[torch.Tensor]:
    count = len(sampler.data_source)  # type: ignore[arg-type]
    generator = sampler.generator
    if generator is None:
        generator = torch.Generator()
        generator.manual_seed(int(torch.empty((), dtype=torch.int64).random_().item()))
    whole, rest = divmod(sampler.num_samples, count)
    for _ in range(whole):
        yield torch.randperm(count, generator=generator)
    # Drawn also when nothing of it is used, as a generator that others see must end where torch's does.
    if rest or sampler.generator is not None:
        yield torch.randperm(count, generator=generator)[:rest]


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
