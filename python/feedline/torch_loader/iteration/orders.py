# SPDX-License-Identifier: Apache-2.0
"""Memory-saving iterators over the orders of torch's samplers, and refills for bad samples."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data.distributed import DistributedSampler
from torch.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

from ...samplers.distributed import DistributedSampler as ExactSampler

_CHUNK = 1 << 16  # indices that are Python objects at the same time


def lean_iterator(sampler: Any, iterator: Iterator[Any]) -> Iterator[Any]:
    """Returns a replacement for the `iterator` of `sampler` that needs 8 bytes per sample instead of 44, or `iterator`
    itself.

    torch's RandomSampler turns its permutation into a list of Python integers. Iterators are replaced only for exact
    types of samplers whose generators draw nothing before the first `next`, so that discarding `iterator` has no
    effect.
    """
    if type(sampler) is BatchSampler and type(sampler.batch_size) is int:
        indices = _indices(sampler.sampler)
        return iterator if indices is None else _Batches(indices, sampler.batch_size, sampler.drop_last)
    return _indices(sampler) or iterator


def tensor_iterator(sampler: Any, iterator: Iterator[Any]) -> Iterator[Any]:
    """Like lean_iterator(), but yields batches as int64 tensors if indices then need not be converted to Python
    integers.
    """
    if type(sampler) is BatchSampler and type(sampler.batch_size) is int:
        inner = sampler.sampler
        if type(inner) is SequentialSampler:
            return _TensorBatches(iter([torch.arange(len(inner))]), sampler)
        if type(inner) is RandomSampler and not inner.replacement and inner.num_samples <= len(inner.data_source):  # type: ignore[arg-type]
            return _TensorBatches(_orders(inner), sampler)
    return lean_iterator(sampler, iterator)


def pass_over(order: Iterator[Any], count: int) -> int:
    """Skips at most `count` items of the order without creating them. Returns the number skipped."""
    return order.pass_over(count) if isinstance(order, (_Indices, _Batches, _TensorBatches, RefillOrder)) else 0


class _Indices:
    """Yields the concatenation of `orders` as integers."""

    def __init__(self, orders: Iterator[torch.Tensor | range | list[int]]) -> None:
        self._orders = orders
        self._order: torch.Tensor | range | list[int] = range(0)
        self._begin = 0  # first position that was not converted yet
        self._chunk: list[int] = []
        self._next = 0  # position in the chunk

    def __iter__(self) -> _Indices:
        return self

    def __next__(self) -> int:
        if self._next == len(self._chunk) and not self._fill():
            raise StopIteration
        self._next += 1
        return self._chunk[self._next - 1]

    def take(self, count: int) -> list[int]:
        """Returns the next `count` indices, or all remaining indices if there are fewer."""
        taken = self._chunk[self._next : self._next + count]
        self._next += len(taken)
        while len(taken) < count and self._fill():
            self._next = min(count - len(taken), len(self._chunk))
            taken += self._chunk[: self._next]
        return taken

    def pass_over(self, count: int) -> int:
        passed = min(count, len(self._chunk) - self._next)
        self._next += passed
        while passed < count and self._has_more():
            step = min(count - passed, len(self._order) - self._begin)
            self._begin += step
            passed += step
        return passed

    def _fill(self) -> bool:
        """Converts the next chunk of the order, if there is one."""
        if not self._has_more():
            return False
        part = self._order[self._begin : self._begin + _CHUNK]
        self._chunk, self._next = part.tolist() if isinstance(part, torch.Tensor) else list(part), 0
        self._begin += len(part)
        return True

    def _has_more(self) -> bool:
        while self._begin == len(self._order):
            order = next(self._orders, None)
            if order is None:
                return False
            self._order, self._begin = order, 0
        return True


class _Batches:
    """Yields lists of `size` indices."""

    def __init__(self, indices: _Indices, size: int, drop_last: bool) -> None:
        self._indices, self._size, self._drop_last = indices, size, drop_last

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> list[int]:
        batch = self._indices.take(self._size)
        if not batch or (self._drop_last and len(batch) < self._size):
            raise StopIteration
        return batch

    def pass_over(self, count: int) -> int:
        return math.ceil(self._indices.pass_over(count * self._size) / self._size)  # includes one that is not full


class _TensorBatches:
    """Yields batches of the first of `orders`; the other orders only draw from the generator."""

    def __init__(self, orders: Iterator[torch.Tensor], sampler: BatchSampler) -> None:
        self._orders, self._size, self._drop_last = orders, sampler.batch_size, sampler.drop_last
        self._order: torch.Tensor | None = None
        self._begin = 0

    def __iter__(self) -> _TensorBatches:
        return self

    def __next__(self) -> torch.Tensor:
        order = self._drawn()
        begin, self._begin = self._begin, self._begin + self._size
        if self._begin > order.numel():
            # torch detects the end by requesting one more index, before the last batch if that is short
            collections.deque(self._orders, maxlen=0)
            if self._drop_last or begin >= order.numel():
                raise StopIteration
        return order[begin : self._begin]

    def pass_over(self, count: int) -> int:
        passed = min(count, (self._drawn().numel() - self._begin) // self._size)
        self._begin += passed * self._size
        return passed

    def _drawn(self) -> torch.Tensor:
        if self._order is None:
            self._order = next(self._orders)
        return self._order


def is_unique(sampler: Any) -> bool:
    """Returns True if no index occurs twice in an epoch, judged by the exact types of the samplers."""
    inner = sampler.sampler if type(sampler) is BatchSampler else sampler
    if type(inner) is RandomSampler:
        return not inner.replacement and inner.num_samples <= len(inner.data_source)  # type: ignore[arg-type]
    return type(inner) in (SequentialSampler, DistributedSampler, ExactSampler)


def _indices(sampler: Any) -> _Indices | None:
    """Returns the order of one of torch's samplers if it is known in advance; None for other samplers."""
    if type(sampler) is SequentialSampler:
        return _Indices(_ascending(sampler))
    if type(sampler) is RandomSampler and not sampler.replacement:
        return _Indices(_orders(sampler))
    if type(sampler) is DistributedSampler:
        return _Indices(_listed(sampler))
    return None


def _listed(sampler: DistributedSampler[Any]) -> Iterator[list[int]]:
    yield list(sampler)  # torch makes a list of it, too


def _ascending(sampler: SequentialSampler) -> Iterator[range]:
    yield range(len(sampler))


def _orders(sampler: RandomSampler) -> Iterator[torch.Tensor]:
    count = len(sampler.data_source)  # type: ignore[arg-type]
    generator = sampler.generator
    if generator is None:
        generator = torch.Generator()
        generator.manual_seed(int(torch.empty((), dtype=torch.int64).random_().item()))
    whole, rest = divmod(sampler.num_samples, count)
    for _ in range(whole):
        yield torch.randperm(count, generator=generator)
    # Drawn even if unused: a generator that is visible to others must end in the same state as with torch.
    if rest or sampler.generator is not None:
        yield torch.randperm(count, generator=generator)[:rest]


class RefillOrder:
    """With on_error="skip", replaces a bad sample with the last sample of the order that has not been used as a
    replacement.

    Each replacement shortens the order by one sample (docs/decisions/order-refills-come-from-the-end.md). Replacements
    are assigned in batch order, so they depend only on which samples are bad, not on timing. With drop_last, the
    samples that would be dropped are used first.
    """

    def __init__(self, batch_sampler: Any, iterator: Iterator[Any], end: int | None = None) -> None:
        self.drop_last = False
        if type(batch_sampler) is BatchSampler:
            self.drop_last = batch_sampler.drop_last
            # The iterator has not been advanced, and BatchSampler's draws nothing before that.
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

    def pass_over(self, count: int) -> int:
        passed = max(0, min(count, len(self._starts) - 1 - self._next))
        self._next += passed
        return passed

    def batch(self, number: int) -> list[Any]:
        """Returns batch `number` without samples that were used as replacements; empty after the end of the order."""
        if number + 1 >= len(self._starts):
            return []
        batch = self._flat[self._starts[number] : min(self._starts[number + 1], self.end)]
        return [] if self.drop_last and len(batch) < self._full else batch

    def refill(self, number: int) -> list[Any]:
        """Returns a list with one replacement for batch `number`; empty if all later samples have been used."""
        if self.end <= self._starts[min(number + 1, len(self._starts) - 1)]:
            return []
        self.end -= 1
        return [self._flat[self.end]]
