# SPDX-License-Identifier: Apache-2.0
"""feedline.DataLoader over datasets of every kind, held against what torch's loader must give."""

from __future__ import annotations

import collections
import gc
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler, Dataset, IterableDataset, SequentialSampler, TensorDataset, get_worker_info
from torch.utils.data.distributed import DistributedSampler

import feedline

from .consumers import Wrong, in_threads
from .sources import ROWS

Options = dict[str, Any]


class Items(Dataset):
    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> tuple[int, torch.Tensor]:
        return index, torch.full((3,), index)


class Rows(Items):
    """As Hugging Face's datasets are asked: for all of a batch at once."""

    def __getitems__(self, indices: list[int]) -> list[tuple[int, torch.Tensor]]:
        return [self[index] for index in indices]


class Stream(IterableDataset):
    """Shares itself out over the workers."""

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        yield from range(ROWS) if info is None else range(info.id, ROWS, info.num_workers)


DATASETS: dict[str, Callable[[], Any]] = {
    "tensors": lambda: TensorDataset(torch.arange(ROWS), torch.zeros(ROWS, 1000)),
    "numbers": lambda: list(range(ROWS)),
    "dicts": lambda: [{"id": i, "text": "x" * i} for i in range(ROWS)],
    "items": Items,
    "rows": Rows,
    "stream": Stream,
    "native arrays": lambda: feedline.arrays(id=torch.arange(ROWS), x=torch.zeros(ROWS, 5)),
}


def draw(rng: random.Random) -> Options:
    name = rng.choice(list(DATASETS))
    options: Options = {"dataset": name, "batch_size": rng.choice((1, 2, 4, 7, 23, 50)), "seed": rng.randrange(5)}
    workers = rng.choice((0, 0, 0, 1, 2, "auto"))
    options["num_workers"] = workers
    order = rng.choice(("none", "shuffle", "distributed", "batch sampler", "buckets"))
    if name == "stream":
        order = "none"
    options["order"] = order
    choices: dict[str, tuple[float, tuple[Any, ...]]] = {
        "drop_last": (0.2, (True,)),
        "in_order": (0.1, (False,)),
        "lower": (0.2, ("never", "auto")),
        "on_error": (0.1, ("skip", "replace")),
        "memory_budget": (0.1, ("1 MB", 100_000)),
        "stall_timeout": (0.1, (20.0,)),
    }
    if workers not in (0, "auto"):
        choices["persistent_workers"] = (0.3, (True,))
        choices["prefetch_factor"] = (0.2, (1, 3))
        choices["worker_method"] = (0.3, ("thread", "process"))
    for option, (probability, values) in choices.items():
        if rng.random() < probability:
            options[option] = rng.choice(values)
    if order in ("batch sampler", "buckets"):
        options.pop("drop_last", None)
    return options


def loader_of(options: Options) -> Any:
    given = dict(options)
    dataset = DATASETS[given.pop("dataset")]()
    order = given.pop("order")
    if order == "shuffle":
        given["shuffle"] = True
    elif order == "distributed":
        given["sampler"] = DistributedSampler(dataset, num_replicas=1, rank=0)
    elif order == "batch sampler":
        given["batch_sampler"] = BatchSampler(SequentialSampler(dataset), given.pop("batch_size"), False)
    elif order == "buckets":
        lengths = [1 + i % 5 for i in range(ROWS)]
        given["batch_sampler"] = feedline.BucketBatchSampler(lengths, batch_size=given.pop("batch_size"), buckets=2)
    return feedline.DataLoader(dataset, **given)


def ids_of(batch: Any) -> list[int]:
    if isinstance(batch, dict):
        batch = batch["id"]
    elif isinstance(batch, (list, tuple)):
        batch = batch[0]
    return [int(one) for one in batch]


def epoch(options: Options, loader: Any) -> list[list[int]]:
    found = [ids_of(batch) for batch in loader]
    check(options, found)
    return found


def check(options: Options, found: list[list[int]]) -> None:
    got = collections.Counter(one for batch in found for one in batch)
    wanted = collections.Counter(range(ROWS))
    if options.get("drop_last"):
        extra = got - wanted
        workers = (
            1
            if options["dataset"] != "stream"
            else max(1, options["num_workers"] if options["num_workers"] != "auto" else 9)
        )
        if extra or got.total() < ROWS - workers * options["batch_size"]:
            raise Wrong(f"drop_last: {found}")
    elif got != wanted:
        raise Wrong(f"lost {dict(wanted - got)}, repeated {dict(got - wanted)}")


def whole(options: Options, rng: random.Random) -> None:
    loader = loader_of(options)
    first = [epoch(options, loader) for _ in range(2)]
    if options.get("in_order", True) and options["num_workers"] != "auto" and options["dataset"] != "stream":
        other = loader_of(_without_workers(options))
        second = [epoch(options, other) for _ in range(2)]
        if first != second:
            raise Wrong(f"{first} with workers, and {second} without")


def _without_workers(options: Options) -> Options:
    of_workers = ("persistent_workers", "prefetch_factor", "worker_method")
    return {**{name: value for name, value in options.items() if name not in of_workers}, "num_workers": 0}


def leave_early(options: Options, rng: random.Random) -> None:
    loader = loader_of(options)
    for _ in range(2):
        iterator = iter(loader)
        for _ in range(rng.randrange(3)):
            next(iterator, None)
        if rng.random() < 0.5:
            del iterator
    epoch(options, loader)


def resume(options: Options, rng: random.Random) -> None:
    loader = loader_of(options)
    iterator = iter(loader)
    count = rng.randrange(4)
    taken = [ids_of(batch) for _ in range(count) if (batch := next(iterator, None)) is not None]
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    rest = [ids_of(batch) for batch in iterator]
    again = loader_of(options)
    again.load_state_dict(state)
    found = [ids_of(batch) for batch in again]
    if not rest:
        return  # the state is of an epoch's end
    check(options, taken + found)
    if options.get("in_order", True) and options["num_workers"] != "auto" and found != rest:
        raise Wrong(f"resumed after {taken}: {found} and not {rest}")


def two_iterators(options: Options, rng: random.Random) -> None:
    """torch's loaders may have several at once."""
    if options.get("persistent_workers"):
        return
    loader = loader_of(options)
    found: list[list[list[int]]] = [[], []]
    iterators = [iter(loader), iter(loader)]
    for _ in range(ROWS):
        for k in (0, 1):
            batch = next(iterators[k], None)
            if batch is not None:
                found[k].append(ids_of(batch))
    for one in found:
        check(options, one)


def loaders_of_threads(options: Options, rng: random.Random) -> None:
    in_threads([lambda: (epoch(options, loader_of(options)), None)[1]] * 2)


def held_batches(options: Options, rng: random.Random) -> None:
    loader = loader_of(options)
    held = [(batch, ids_of(batch)) for batch in loader]
    del loader
    gc.collect()
    epoch(options, loader_of(options))
    for batch, before in held:
        if ids_of(batch) != before:
            raise Wrong("a batch that is held has changed")


WAYS: dict[str, Callable[[Options, random.Random], None]] = {
    way.__name__: way for way in (whole, leave_early, resume, two_iterators, loaders_of_threads, held_batches)
}
