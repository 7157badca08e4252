# SPDX-License-Identifier: Apache-2.0
"""Random arguments, valid and not: torch's loader and ours must do the same.

FEEDLINE_FUZZ_CASES sets how many (2,000), FEEDLINE_FUZZ_SEED where they begin. A failure prints its case's number and
arguments; FEEDLINE_FUZZ_SEED=<number> FEEDLINE_FUZZ_CASES=1 repeats it.
"""

from __future__ import annotations

import collections
import os
import random
import re
import warnings

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
    get_worker_info,
)
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader

CASES = int(os.environ.get("FEEDLINE_FUZZ_CASES", "2000"))
FIRST = int(os.environ.get("FEEDLINE_FUZZ_SEED", "0"))
WORKER_SHARE = 0.07  # of the cases have worker processes, which cost a hundred times as much

Point = collections.namedtuple("Point", ["x", "y"])


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


SAMPLES = {
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
    "object": lambda i: object(),
    "strings": lambda i: np.array([f"{i}"]),
    "fails": lambda i: [][i] if i % 5 == 3 else i,
    "key error": lambda i: {}["missing"] if i == 2 else i,
    "stops": lambda i: next(iter(())) if i == 4 else i,
    "seed": lambda i: (torch.initial_seed() % 1000, -1 if get_worker_info() is None else get_worker_info().id),
}


class Streamed(IterableDataset):
    def __init__(self, count, kind, sized):
        self.count, self.kind = count, kind
        if sized:
            self.__class__ = SizedStream

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return (SAMPLES[self.kind](i) for i in range(first, self.count, step))


class SizedStream(Streamed):
    def __len__(self):
        return self.count


class Batched(Made):
    def __getitems__(self, indices):
        return [self[i] for i in indices]


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


def uneven(choose, *options):
    """The first option nine times in ten, so that a case has about one odd thing."""
    return choose.choice(options) if choose.random() < 0.1 else options[0]


def make_dataset(choose):
    count = choose.choice([0, 1, 2, 5, 9, 16])
    kind = choose.choice(list(SAMPLES))
    which = choose.random()
    if which < 0.5:
        return Made(count, kind)
    if which < 0.65:
        return Streamed(count, kind, choose.random() < 0.5)
    if which < 0.72:
        return Batched(count, kind)
    if which < 0.8:
        return TensorDataset(torch.arange(count), torch.arange(count * 2.0).view(count, 2))
    if which < 0.87:
        return Subset(Made(count, kind), list(range(0, count, 2)))
    if which < 0.94:
        return ConcatDataset([Made(count, kind), Made(3, kind)])
    return list(range(count))


def make_arguments(choose, dataset):
    """A function that makes the arguments anew, for samplers and generators have a state."""
    workers = choose.random() < WORKER_SHARE
    seed = choose.randrange(1000)
    count = len(dataset) if hasattr(dataset, "__len__") else 5
    plan = {
        "batch_size": choose.choice([1, 2, 3, 5, 20, None]),
        "shuffle": choose.choice([None, False, True]),
        "drop_last": choose.random() < 0.2,
        "num_workers": choose.choice([1, 2, 3]) if workers else uneven(choose, 0, -1),
        "collate_fn": uneven(choose, None, as_is, summed, fails),
        "pin_memory": choose.random() < 0.05,
        "timeout": uneven(choose, 0, -1, 30),
        "generator": choose.random() < 0.5,
        "prefetch_factor": uneven(choose, None, 1, 3, 0, -1) if workers else uneven(choose, None, 2),
        "persistent_workers": (workers and choose.random() < 0.4) or choose.random() < 0.02,
        "multiprocessing_context": uneven(choose, None, "fork", "no such", 5),
        "sampler": uneven(choose, None, "random", "replacement", "sequential", "failing", "list"),
        "batch_sampler": uneven(choose, None, "batches", "lists"),
        "in_order": True,
    }
    if plan["batch_sampler"] and choose.random() < 0.8:
        plan |= {"batch_size": 1, "shuffle": None, "sampler": None, "drop_last": False}
    if plan["sampler"] and choose.random() < 0.8:
        plan["shuffle"] = None

    def make():
        arguments = dict(plan)
        arguments["generator"] = torch.Generator().manual_seed(seed) if plan["generator"] else None
        generator = torch.Generator().manual_seed(seed + 1)
        arguments["sampler"] = {
            None: lambda: None,
            "random": lambda: RandomSampler(range(max(count, 1)), generator=generator),
            "replacement": lambda: RandomSampler(range(max(count, 1)), replacement=True, num_samples=7),
            "sequential": lambda: SequentialSampler(range(count)),
            "failing": lambda: FailingSampler(count),
            "list": lambda: list(reversed(range(count))),
        }[plan["sampler"]]()
        arguments["batch_sampler"] = {
            None: lambda: None,
            "batches": lambda: BatchSampler(RandomSampler(range(max(count, 1))), 3, False),
            "lists": lambda: [[0, count - 1], [0], []] if count else [],
        }[plan["batch_sampler"]]()
        return arguments

    return plan, make


def plain(value):
    """Something that compares with ==, and tells types apart."""
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype), tuple(value.shape), value.tolist(), value.stride()
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, [(key, plain(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(item) for item in value]
    if type(value) is object:
        return "object"
    return type(value).__name__, value


def words(error):
    """Type and message; of an error from a worker, the part that is not its traceback."""
    text = re.sub(r"0x[0-9a-f]+", "0x", str(error))
    return type(error).__name__, text.partition("\nOriginal Traceback")[0]


def behaviour(loader_class, dataset, make):
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    seen = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            loader = loader_class(dataset, **make())
            attributes = ("batch_size", "num_workers", "drop_last", "timeout", "prefetch_factor", "persistent_workers")
            seen.append([getattr(loader, name) for name in attributes])
            seen.append([type(loader.sampler).__name__, type(loader.batch_sampler).__name__])
            try:
                seen.append(len(loader))
            except TypeError as error:
                seen.append(words(error)[0])
            for _ in range(2):
                epoch(loader, seen)
        except Exception as error:
            seen.append(words(error))
    seen.append(("random", torch.get_rng_state().sum().item(), random.random(), np.random.rand()))
    seen.append(sorted({str(w.message)[:60] for w in warned if w.category is UserWarning}))
    return seen


def epoch(loader, seen):
    iterator = iter(loader)
    errors = 0
    while errors < 3:
        try:
            seen.append(plain(next(iterator)))
        except StopIteration:
            return
        except Exception as error:
            seen.append(words(error))
            errors += 1


def test_the_same_batches_errors_lengths_and_random_numbers():
    differing = []
    compared = collections.Counter()
    for case in range(FIRST, FIRST + CASES):
        choose = random.Random(case)
        dataset = make_dataset(choose)
        plan, make = make_arguments(choose, dataset)
        theirs = behaviour(TorchLoader, dataset, make)
        ours = behaviour(DataLoader, dataset, make)
        compared["workers" if plan["num_workers"] > 0 else "no workers"] += 1
        if theirs != ours:
            first = next(((a, b) for a, b in zip(theirs, ours, strict=False) if a != b), (len(theirs), len(ours)))
            differing.append(
                f"case {case}: {type(dataset).__name__}({getattr(dataset, 'kind', '')}) {plan}:\n  {first}"
            )
            if len(differing) == 5:
                break
    assert not differing, "\n".join(differing)
    if CASES >= 1000:
        assert min(compared.values()) > CASES * WORKER_SHARE / 2
