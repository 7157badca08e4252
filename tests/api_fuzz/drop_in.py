# SPDX-License-Identifier: Apache-2.0
"""feedline.DataLoader over datasets of every kind, compared with the batches that torch's loader must give."""

from __future__ import annotations

import collections
import gc
import importlib
import pickle
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import BatchSampler, Dataset, IterableDataset, SequentialSampler, TensorDataset, get_worker_info
from torch.utils.data.distributed import DistributedSampler

import feedline

from .consumers import Wrong, in_threads
from .operations import same
from .sources import ROWS

Options = dict[str, Any]


class Items(Dataset):
    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> tuple[int, torch.Tensor]:
        return index, torch.full((3,), index)


class Rows(Items):
    """Like Hugging Face's datasets: read a whole batch at once."""

    def __getitems__(self, indices: list[int]) -> list[tuple[int, torch.Tensor]]:
        return [self[index] for index in indices]


class Stream(IterableDataset):
    """Divides itself among the workers."""

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        yield from range(ROWS) if info is None else range(info.id, ROWS, info.num_workers)


def _images(root: Path) -> Any:
    """torchvision's, whose transforms run natively."""
    datasets, transforms = _installed("torchvision.datasets"), _installed("torchvision.transforms")
    steps = [transforms.Resize((8, 8)), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    return datasets.ImageFolder(str(root / "folder"), transforms.Compose(steps))


def _table(root: Path) -> Any:
    rows = {"id": list(range(ROWS)), "text": ["x" * i for i in range(ROWS)]}
    return _installed("datasets").Dataset.from_dict(rows)


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise feedline.ConfigError(f"{name} is not installed") from error


DATASETS: dict[str, Callable[[Path], Any]] = {
    "tensors": lambda root: TensorDataset(torch.arange(ROWS), torch.zeros(ROWS, 1000)),
    "numbers": lambda root: list(range(ROWS)),
    "dicts": lambda root: [{"id": i, "text": "x" * i} for i in range(ROWS)],
    "items": lambda root: Items(),
    "rows": lambda root: Rows(),
    "stream": lambda root: Stream(),
    "native arrays": lambda root: feedline.arrays(id=torch.arange(ROWS), x=torch.zeros(ROWS, 5)),
    "native images": lambda root: feedline.open(root / "folder").resize((8, 8)),
    "native shards": lambda root: feedline.open(sorted((root / "tar").glob("*.tar"))).resize((8, 8)),
    "native map": lambda root: feedline.open(root / "folder").resize((8, 8)).map(same, "image"),
    "images": _images,
    "table": _table,
    "table as torch's": lambda root: _table(root).with_format("torch"),
    "stream of a table": lambda root: _table(root).to_iterable_dataset(num_shards=4),
}
_STREAMS = ("stream", "stream of a table")
_IDS_SECOND = ("native images", "native shards", "native map", "images")  # (image, label)


ORDERS = ("none", "shuffle", "distributed", "batch sampler", "buckets", "list")


def draw(rng: random.Random) -> Options:
    name = rng.choice(list(DATASETS))
    options: Options = {"dataset": name, "batch_size": rng.choice((1, 2, 4, 7, 23, 50)), "seed": rng.randrange(5)}
    workers = rng.choice((0, 0, 0, 1, 2, "auto"))
    options["num_workers"] = workers
    order = rng.choice(ORDERS)
    if name in _STREAMS:
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
        contexts = ("fork", "spawn") if name.startswith("native") else ("fork",)  # a spawned process imports torch
        choices["multiprocessing_context"] = (0.3, contexts)
    for option, (probability, values) in choices.items():
        if rng.random() < probability:
            options[option] = rng.choice(values)
    if order in ("batch sampler", "buckets"):
        options.pop("drop_last", None)
    return options


@dataclass
class Setting:
    """The start of a way to consume."""

    options: Options
    rng: random.Random
    root: Path

    def loader(self, **changed: Any) -> Any:
        given = {**self.options, **changed}
        dataset = DATASETS[given.pop("dataset")](self.root)
        order = given.pop("order")
        if order == "shuffle":
            given["shuffle"] = True
        elif order == "distributed":
            given["sampler"] = DistributedSampler(dataset, num_replicas=1, rank=0)
        elif order == "list":
            given["sampler"] = list(range(ROWS))
        elif order == "batch sampler":
            given["batch_sampler"] = BatchSampler(SequentialSampler(dataset), given.pop("batch_size"), False)
        elif order == "buckets":
            lengths, size = [1 + i % 5 for i in range(ROWS)], given.pop("batch_size")
            given["batch_sampler"] = feedline.BucketBatchSampler(lengths, batch_size=size, buckets=2)
        return feedline.DataLoader(dataset, **given)

    def without_workers(self) -> Any:
        of_workers = ("persistent_workers", "prefetch_factor", "worker_method", "multiprocessing_context")
        options = {name: value for name, value in self.options.items() if name not in of_workers}
        return Setting({**options, "num_workers": 0}, self.rng, self.root).loader()

    @property
    def in_order(self) -> bool:
        """Whether the order is the same with any number of workers."""
        return self.options.get("in_order", True) and self.options["num_workers"] != "auto"

    def ids_of(self, batch: Any) -> list[int]:
        if isinstance(batch, dict):
            batch = batch["id"]
        elif isinstance(batch, (list, tuple)):
            batch = batch[1 if self.options["dataset"] in _IDS_SECOND else 0]
        return [int(one) for one in batch]

    def epoch(self, loader: Any) -> list[list[int]]:
        found = [self.ids_of(batch) for batch in loader]
        self.check(found)
        return found

    def check(self, found: list[list[int]]) -> None:
        got = collections.Counter(one for batch in found for one in batch)
        wanted = collections.Counter(range(ROWS))
        if self.options.get("drop_last"):
            size = max([len(batch) for batch in found], default=self.options["batch_size"])
            short = [batch for batch in found if len(batch) < size]
            if got - wanted or (short and size == self.options["batch_size"]):
                raise Wrong(f"drop_last: {found}")
            if self.options["dataset"] not in _STREAMS and got.total() != ROWS // size * size:
                raise Wrong(f"drop_last: {got.total()} rows")
        elif got != wanted:
            raise Wrong(f"lost {dict(wanted - got)}, repeated {dict(got - wanted)}")


def whole(setting: Setting) -> None:
    loader = setting.loader()
    first = [setting.epoch(loader) for _ in range(2)]
    if setting.in_order and setting.options["dataset"] not in _STREAMS:
        other = setting.without_workers()
        second = [setting.epoch(other) for _ in range(2)]
        if first != second:
            raise Wrong(f"{first} with workers, and {second} without")


def leave_early(setting: Setting) -> None:
    loader = setting.loader()
    for _ in range(2):
        iterator = iter(loader)
        for _ in range(setting.rng.randrange(3)):
            next(iterator, None)
        if setting.rng.random() < 0.5:
            del iterator
    setting.epoch(loader)


def resume(setting: Setting) -> None:
    loader = setting.loader()
    iterator = iter(loader)
    count = setting.rng.randrange(4)
    taken = [setting.ids_of(batch) for _ in range(count) if (batch := next(iterator, None)) is not None]
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    rest = [setting.ids_of(batch) for batch in iterator]
    for again in (setting.loader(), setting.without_workers() if setting.in_order else setting.loader()):
        if setting.options["dataset"] in _STREAMS and again.num_workers != loader.num_workers:
            continue  # a stream divides itself among the workers
        again.load_state_dict(state)
        found = [setting.ids_of(batch) for batch in again]
        if not rest:
            continue  # the state is that of an epoch's end
        setting.check(taken + found)
        if setting.in_order and found != rest:
            raise Wrong(f"resumed after {taken}: {found} and not {rest}")


def resume_elsewhere(setting: Setting) -> None:
    """In a loader with another order, size or dataset: an error of Feedline's, or some rows."""
    loader = setting.loader()
    iterator = iter(loader)
    for _ in range(setting.rng.randrange(4)):
        next(iterator, None)
    state = loader.state_dict()
    changes: Options = {"batch_size": setting.rng.choice((1, 3, 24)), "order": setting.rng.choice(ORDERS)}
    if setting.rng.random() < 0.5:
        changes["dataset"] = setting.rng.choice(list(DATASETS))
    if changes.get("dataset", setting.options["dataset"]) in _STREAMS:
        changes["order"] = "none"
    if changes["order"] in ("batch sampler", "buckets"):
        changes["drop_last"] = False
    try:
        again = setting.loader(**changes)
        again.load_state_dict(state)
        for _ in again:
            pass
    except feedline.Error:
        return


def two_iterators(setting: Setting) -> None:
    """torch's loaders may have several at once."""
    if setting.options.get("persistent_workers"):
        return
    loader = setting.loader()
    found: list[list[list[int]]] = [[], []]
    iterators = [iter(loader), iter(loader)]
    for _ in range(ROWS):
        for k in (0, 1):
            batch = next(iterators[k], None)
            if batch is not None:
                found[k].append(setting.ids_of(batch))
    for one in found:
        setting.check(one)


def loaders_of_threads(setting: Setting) -> None:
    in_threads([lambda: (setting.epoch(setting.loader()), None)[1]] * 2)


def held_batches(setting: Setting) -> None:
    loader = setting.loader()
    held = [(batch, setting.ids_of(batch)) for batch in loader]
    del loader
    gc.collect()
    setting.epoch(setting.loader())
    for batch, before in held:
        if setting.ids_of(batch) != before:
            raise Wrong("a batch that is held has changed")


def questions(setting: Setting) -> None:
    """Calls that are allowed while it runs."""
    loader = setting.loader()
    found = []
    for batch in loader:
        found.append(setting.ids_of(batch))
        loader.stats(), loader.state_dict(), loader.explain(), repr(loader)
        if setting.options["dataset"] not in _STREAMS:
            len(loader)
    setting.check(found)


def torchs_loader(setting: Setting) -> None:
    """torch's own loader over the same dataset: a native dataset is a map-style dataset of torch."""
    if setting.options["dataset"] in _STREAMS:
        return
    dataset = DATASETS[setting.options["dataset"]](setting.root)
    workers = setting.options["num_workers"]
    workers = 1 if workers == "auto" else workers
    size = setting.options["batch_size"]
    context = setting.options.get("multiprocessing_context")
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=size, shuffle=True, num_workers=workers, multiprocessing_context=context
    )
    Setting({"dataset": setting.options["dataset"], "batch_size": size}, setting.rng, setting.root).epoch(loader)


WAYS: dict[str, Callable[[Setting], None]] = {
    way.__name__: way
    for way in (
        *(whole, leave_early, resume, resume_elsewhere, two_iterators, loaders_of_threads, held_batches, questions),
        torchs_loader,
    )
}
