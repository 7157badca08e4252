# SPDX-License-Identifier: Apache-2.0
"""Random datasets and arguments, valid and not, for `test_same_as_torch`. A case is determined by its number."""

from __future__ import annotations

import collections
import multiprocessing
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    default_collate,
    default_convert,
    get_worker_info,
)

Point = collections.namedtuple("Point", ["x", "y"])

SAMPLES: dict[str, Callable[[int], Any]] = {
    "int": lambda i: i,
    "float": lambda i: i / 2,
    "str": lambda i: f"sample {i}",
    "bytes": lambda i: bytes([i % 256]),
    "tensor": lambda i: torch.full((3, 2), i, dtype=torch.int16),
    "large": lambda i: torch.full((100, 100), float(i)),
    "bool": lambda i: torch.tensor(i % 2 == 0),
    "bfloat16": lambda i: torch.full((4,), float(i), dtype=torch.bfloat16),
    "empty": lambda i: torch.empty(0, 2),
    "scalar": lambda i: np.float32(i),
    "array": lambda i: np.arange(i, i + 6).reshape(2, 3),
    "dict": lambda i: {"a": i, "b": {"c": torch.tensor([i]), "d": [f"{i}", 2.0]}},
    "tuple": lambda i: (i, (float(i), np.array([i]))),
    "named": lambda i: Point(i, torch.tensor(float(i))),
    "ordered": lambda i: collections.OrderedDict(z=i, a=torch.ones(2)),
    "list": lambda i: [torch.zeros(2), i],
    "random": lambda i: (random.random(), float(np.random.rand()), torch.rand(2)),
    "transposed": lambda i: torch.arange(6.0).view(2, 3).t() + i,
    "unequal": lambda i: torch.zeros(i % 3 + 1),
    "ragged": lambda i: [0] * (i % 3),
    "none": lambda i: None if i % 4 == 3 else i,
    "object": lambda i: object(),
    "strings": lambda i: np.array([f"{i}"]),
    "fails": lambda i: [][i] if i % 5 == 3 else i,
    "key error": lambda i: {}["missing"] if i == 2 else i,
    "stops": lambda i: next(iter(())) if i == 4 else i,
    "seed": lambda i: (torch.initial_seed() % 1000, -1 if get_worker_info() is None else get_worker_info().id),
}
# Samples that depend on the worker that makes them and on its earlier samples; and one that ends its epoch.
ORDER_MATTERS = ("random", "seed", "stops")

COLUMNS: dict[str, Callable[[int], torch.Tensor]] = {
    "numbers": lambda n: torch.arange(n),
    "rows": lambda n: torch.arange(n * 2.0).view(n, 2),
    "images": lambda n: torch.arange(n * 12, dtype=torch.uint8).view(n, 3, 2, 2),
    "turned": lambda n: torch.arange(n * 6.0).view(3, n, 2).transpose(0, 1),
    "halves": lambda n: torch.arange(n * 3.0).view(n, 3).to(torch.bfloat16),
    "answers": lambda n: torch.arange(n) % 2 == 0,
    "complex": lambda n: torch.arange(n).to(torch.complex64),
    "nothing": lambda n: torch.empty(n, 0),
    "every other": lambda n: torch.arange(2 * n)[::2],
}
ARRAYS: dict[str, Callable[[int], Any]] = {
    "array": lambda n: np.arange(n * 2).reshape(n, 2),
    "array of numbers": lambda n: np.arange(n, dtype=np.int16),
    "array of floats": lambda n: np.linspace(0, 1, n * 3, dtype=np.float64).reshape(n, 3)[::-1],
    "read-only array": lambda n: np.frombuffer(bytes(range(n * 4)), np.uint8).reshape(n, 2, 2),
    "tensor": lambda n: torch.arange(n * 2.0).view(n, 2),
    "list": lambda n: list(range(n)),
    "range": lambda n: range(n),
    "tuple of tensors": lambda n: tuple(torch.arange(n * 2.0).view(n, 2)),
}


class Made(Dataset):
    """Samples of some structure."""

    def __init__(self, count, kind):
        self.count, self.kind = count, kind

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return SAMPLES[self.kind](index)


class Batched(Made):
    def __getitems__(self, indices):
        return [self[i] for i in indices]


class Unsized:
    """A map dataset that only has __getitem__."""

    def __init__(self, kind):
        self.kind = kind

    def __getitem__(self, index):
        return SAMPLES[self.kind](index)


class Doubled(TensorDataset):
    """A subclass whose overridden methods must be used."""

    def __getitem__(self, index):
        return tuple(column * 2 for column in super().__getitem__(index))


class Streamed(IterableDataset):
    def __init__(self, count, kind):
        self.count, self.kind = count, kind

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return (SAMPLES[self.kind](i) for i in range(first, self.count, step))


class SizedStream(Streamed):
    def __len__(self):
        return self.count


class UnderstatedStream(Streamed):
    """Has more samples than its length, for which torch prints a warning."""

    def __len__(self):
        return self.count // 2


class FailingSampler:
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        yield from range(min(3, self.count))
        raise ValueError("the sampler failed")

    def __len__(self):
        return self.count


def as_is(samples):
    return samples


def summed(samples):
    return {"count": len(samples), "first": samples[0], "array": np.arange(3), "text": "x" * 10}


def fails(samples):
    raise RuntimeError("the collate function failed")


def cannot_start(worker):
    raise OSError(f"worker {worker} cannot start")


def other_numbers(worker):
    np.random.seed(worker + 3)
    torch.manual_seed(worker)


def uneven(choose, *options):
    """Returns the first option nine times in ten, so that a case has about one unusual option."""
    return choose.choice(options) if choose.random() < 0.1 else options[0]


def make_dataset(choose: random.Random, kinds: tuple[str, ...] = tuple(SAMPLES), streams: float = 0.2) -> Any:
    """Returns a random dataset; `streams` is the share of iterable ones."""
    count = choose.choice([0, 1, 2, 5, 9, 16])
    kind = choose.choice(kinds)
    if choose.random() < streams:
        return choose.choice([Streamed, Streamed, SizedStream, SizedStream, UnderstatedStream])(count, kind)
    columns = [make(count) for make in choose.choices(list(COLUMNS.values()), k=choose.choice([1, 2, 2, 3]))]
    inner = choose.choice([Made(count, kind), Made(count, kind), TensorDataset(*columns)])
    return choose.choice(
        [
            lambda: Made(count, kind),
            lambda: Made(count, kind),
            lambda: Made(count, kind),
            lambda: Batched(count, kind),
            lambda: TensorDataset(*columns),
            lambda: TensorDataset(*columns),
            lambda: Doubled(*columns),
            lambda: ARRAYS[choose.choice(list(ARRAYS))](count),
            lambda: ARRAYS[choose.choice(list(ARRAYS))](count),
            lambda: Subset(inner, _some_indices(choose, count)),
            lambda: Subset(Subset(inner, list(range(count))[::-1]), _some_indices(choose, count)),
            lambda: ConcatDataset([inner, Made(3, kind)]),
            lambda: ConcatDataset([TensorDataset(*columns), TensorDataset(*(c[:1] for c in columns))]),
            lambda: Unsized(kind),
        ]
    )()


def _some_indices(choose, count):
    half = list(range(0, count, 2))
    return uneven(choose, half, range(count), torch.tensor(half, dtype=torch.long), np.array(half, int), [count + 2])


SAMPLERS = ("random", "replacement", "sequential", "failing", "list", "negative", "beyond", "tensor", "array")
BATCH_SAMPLERS = ("batches", "lists", "tuples", "tensors", "beyond")


def _sampler(name: str | None, count: int, seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    some = range(max(count, 1))
    return {
        None: lambda: None,
        "random": lambda: RandomSampler(some, generator=generator),
        "replacement": lambda: RandomSampler(some, replacement=True, num_samples=7),
        "sequential": lambda: SequentialSampler(range(count)),
        "failing": lambda: FailingSampler(count),
        "list": lambda: list(reversed(range(count))),
        "negative": lambda: list(range(-count, 0)),
        "beyond": lambda: [0, count + 1, 0],
        "tensor": lambda: torch.arange(count),
        "array": lambda: np.arange(count),
    }[name]()


def _batch_sampler(name: str | None, count: int) -> Any:
    order = RandomSampler(range(max(count, 1)))
    return {
        None: lambda: None,
        "batches": lambda: BatchSampler(order, 3, False),
        "lists": lambda: [[0, count - 1], [0], []] if count else [],
        "tuples": lambda: [(0, count - 1), (0,)],
        "tensors": lambda: list(torch.arange(count).split(3)),
        "beyond": lambda: [[0], [0, count + 5], [0]],
    }[name]()


def make_arguments(choose: random.Random, dataset: Any, workers: int) -> tuple[dict[str, Any], Callable[[], Any]]:
    """Returns the arguments as text, and a function that creates them again, because samplers and generators have a
    state.
    """
    seed = choose.randrange(1000)
    count = len(dataset) if hasattr(dataset, "__len__") else 5
    plan: dict[str, Any] = {
        "batch_size": uneven(choose, choose.choice([1, 2, 3, 5, 20, None]), 0, -1, 2.5),
        "shuffle": choose.choice([None, False, True]),
        "drop_last": choose.random() < 0.2,
        "num_workers": workers or uneven(choose, 0, 0, 0, -1),
        "collate_fn": uneven(choose, None, as_is, summed, fails, default_collate, default_convert),
        "pin_memory": choose.random() < 0.05,
        "timeout": uneven(choose, 0, -1, 300),
        "worker_init_fn": uneven(choose, None, other_numbers, cannot_start),
        "generator": choose.random() < 0.5,
        "prefetch_factor": uneven(choose, None, 1, 3, 0, -1) if workers else uneven(choose, None, 2),
        "persistent_workers": choose.random() < (0.6 if workers else 0.02),
        "multiprocessing_context": uneven(choose, None, "fork", "no such", 5),
        "sampler": uneven(choose, None, *SAMPLERS),
        "batch_sampler": uneven(choose, None, *BATCH_SAMPLERS),
        "in_order": choose.random() < 0.7,
    }
    if isinstance(dataset, IterableDataset) and choose.random() < 0.8:
        plan |= {"shuffle": None, "sampler": None, "batch_sampler": None}
    elif isinstance(dataset, Unsized) and choose.random() < 0.8:
        plan |= {"sampler": choose.choice(SAMPLERS), "batch_sampler": None}
    if plan["batch_sampler"] and choose.random() < 0.8:
        plan |= {"batch_size": 1, "shuffle": None, "sampler": None, "drop_last": False}
    if plan["sampler"] and choose.random() < 0.8:
        plan["shuffle"] = None

    def make() -> dict[str, Any]:
        return {
            **plan,
            "generator": torch.Generator().manual_seed(seed) if plan["generator"] else None,
            "sampler": _sampler(plan["sampler"], count, seed + 1),
            "batch_sampler": _batch_sampler(plan["batch_sampler"], count),
        }

    return plan, make


class Stage:
    """Persistent workers use the dataset, the order and the collate function of the current case.

    The workers are forked, and read the case's number from shared memory.
    """

    def __init__(self, streams: bool, kinds: tuple[str, ...]) -> None:
        self._number, self._streams, self._kinds = multiprocessing.Value("q", -1), streams, kinds
        self._shown: tuple[int, Any, Any, list[list[int]]] = (-1, None, None, [])

    def show(self, number: int) -> None:
        self._number.value = number

    def case(self) -> tuple[Any, Any, list[list[int]]]:
        number = self._number.value
        if self._shown[0] != number:
            choose = random.Random(f"stage {number}")
            dataset = make_dataset(choose, self._kinds, streams=float(self._streams))
            count = len(dataset) if hasattr(dataset, "__len__") else 5
            sizes = [choose.choice([0, 1, 1, 2, 3, 5]) for _ in range(choose.randrange(8))]
            batches = [[choose.randrange(-1, count + 1) % (count + 1) for _ in range(size)] for size in sizes]
            collate = uneven(choose, default_collate, as_is, summed, fails, default_convert)
            self._shown = (number, dataset, collate, batches)
        return self._shown[1:]

    def collate(self, samples: Any) -> Any:
        return self.case()[1](samples)


class StagedMap(Dataset):
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __getitem__(self, index):
        return self._stage.case()[0][index]


class StagedStream(IterableDataset):
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __iter__(self):
        return iter(self._stage.case()[0])


class StagedOrder:
    """Returns a batch sampler, or a sampler of single indices."""

    def __init__(self, stage: Stage, single: bool) -> None:
        self._stage, self._single = stage, single

    def __iter__(self):
        batches = self._stage.case()[2]
        return iter([i for batch in batches for i in batch] if self._single else batches)

    def __len__(self):
        return len(list(iter(self)))
