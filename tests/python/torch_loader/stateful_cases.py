# SPDX-License-Identifier: Apache-2.0
"""Cases of torchdata's stateful protocol, drawn from a seed: an interrupted run is compared with an uninterrupted
one.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset, RandomSampler, Sampler, get_worker_info

SIZE = 23


def shard(size=SIZE):
    info = get_worker_info()
    first, step = (info.id, info.num_workers) if info else (0, 1)
    return list(range(first, size, step))


class SaysPlace:
    """The state of a generator's iteration: a resumed one begins at `resumed`."""

    def __init__(self):
        self.at, self.resumed, self.epoch = 0, None, 0

    def state_dict(self):
        return {"at": self.at, "epoch": self.epoch}

    def load_state_dict(self, state):
        self.resumed, self.epoch = state["at"], state["epoch"]


class Plain(Dataset):
    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        return int(index)


class Counting(Plain):
    """Map-style; its samples depend on how many were read."""

    def __init__(self):
        self.read = 0

    def __getitem__(self, index):
        self.read += 1
        return int(index), self.read

    def state_dict(self):
        return {"read": self.read}

    def load_state_dict(self, state):
        self.read = state["read"]


class Shuffled(Plain):
    """Map-style, shuffled by its own generator."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(5)

    def __getitem__(self, index):
        return int(index), int(torch.randint(1000, (1,), generator=self.generator))

    def state_dict(self):
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state):
        self.generator.set_state(state["generator"])


class GloballyShuffled(Plain):
    """Map-style, shuffled by the generator of its process."""

    def __getitem__(self, index):
        return int(index), int(torch.randint(1000, (1,)))

    def state_dict(self):
        return {"torch": torch.get_rng_state()}

    def load_state_dict(self, state):
        torch.set_rng_state(state["torch"])


class Positioned(SaysPlace, IterableDataset):
    """A generator that has its position, and how often it was iterated."""

    def __iter__(self):
        self.at, self.resumed = self.resumed or 0, None
        for item in shard()[self.at :]:
            self.at += 1
            yield item, self.epoch
        self.at = 0
        self.epoch += 1


class OwnShuffle(IterableDataset):
    """Draws its order from its own generator; a resumed one draws it again."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(7)
        self.begin, self.at, self.resumed = self.generator.get_state(), 0, None

    def __iter__(self):
        skip, self.resumed = self.resumed or 0, None
        self.begin, self.at = self.generator.get_state(), skip
        items = shard()
        for place in torch.randperm(len(items), generator=self.generator).tolist()[skip:]:
            self.at += 1
            yield items[place]
        self.begin, self.at = self.generator.get_state(), 0

    def state_dict(self):
        return {"begin": self.begin, "at": self.at}

    def load_state_dict(self, state):
        self.generator.set_state(state["begin"])
        self.begin, self.at = state["begin"], state["at"]
        self.resumed = state["at"]


class StatefulIterator:
    def __init__(self, items, epoch):
        self.items, self.at, self.epoch = items, 0, epoch

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == len(self.items):
            raise StopIteration
        self.at += 1
        return self.items[self.at - 1], self.epoch, int(torch.randint(1000, (1,)))

    def state_dict(self):
        return {"at": self.at, "epoch": self.epoch, "torch": torch.get_rng_state()}

    def load_state_dict(self, state):
        self.at, self.epoch = state["at"], state["epoch"]
        torch.set_rng_state(state["torch"])


class WithStatefulIterator(IterableDataset):
    """Only its iterator has a state."""

    def __iter__(self):
        return StatefulIterator(shard(), 0)


class CountsCalls(IterableDataset):
    """Both have a state: the number of iter() calls, and the position."""

    def __init__(self):
        self.calls = 0

    def __iter__(self):
        self.calls += 1
        return StatefulIterator(shard(), self.calls)

    def state_dict(self):
        return {"calls": self.calls}

    def load_state_dict(self, state):
        self.calls = state["calls"] - 1  # iter() follows


class OwnIterator(IterableDataset):
    """Is its own iterator, and has no state before iter()."""

    def __init__(self):
        self.calls = 0

    def __iter__(self):
        self.calls += 1
        self.items, self.at = shard(), 0
        return self

    def __next__(self):
        if self.at == len(self.items):
            raise StopIteration
        self.at += 1
        return self.items[self.at - 1], self.calls

    def state_dict(self):
        return {"at": self.at, "calls": self.calls}

    def load_state_dict(self, state):
        assert len(self.items) >= state["at"]
        self.at, self.calls = state["at"], state["calls"]


class Stateless(IterableDataset):
    def __iter__(self):
        yield from shard()


class GeneratorSampler(SaysPlace, Sampler):
    """A sampler whose generator has its position; its order depends on the epoch."""

    def __len__(self):
        return SIZE

    def __iter__(self):
        self.at, self.resumed = self.resumed or 0, None
        order = torch.randperm(SIZE, generator=torch.Generator().manual_seed(self.epoch)).tolist()
        for index in order[self.at :]:
            self.at += 1
            yield index
        self.at = 0
        self.epoch += 1


class StaleSampler(GeneratorSampler):
    """Like torchdata's StatefulDistributedSampler: its final state says that everything was delivered, and iter()
    begins again.
    """

    def __iter__(self):
        self.at, self.resumed = self.resumed or 0, None
        for index in range(SIZE)[self.at :]:
            self.at += 1
            yield index


class SamplerIterator:
    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == SIZE:
            raise StopIteration
        self.at += 1
        return (self.at * 7) % SIZE

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class WithSamplerIterator(Sampler):
    def __len__(self):
        return SIZE

    def __iter__(self):
        return SamplerIterator()


MAPS = (Plain, Counting, Shuffled, GloballyShuffled)
STREAMS = (Positioned, OwnShuffle, WithStatefulIterator, CountsCalls, OwnIterator, Stateless)
SAMPLERS = {
    "none": lambda: None,
    "random": lambda: RandomSampler(range(SIZE), generator=torch.Generator().manual_seed(3)),
    "generator": GeneratorSampler,
    "stale": StaleSampler,
    "iterator": WithSamplerIterator,
}


@dataclass(frozen=True)
class Case:
    """`stop`: number of delivered batches of epoch `epoch`; None: all, including the end; -1: before iter()."""

    dataset: type
    sampler: str
    workers: int
    persistent: bool
    batch_size: int | None
    every: int
    epoch: int
    stop: int | None
    moved: int | None  # None: a new loader resumes; otherwise the same one, after this many more batches

    def loader(self, kind: Any, **more: Any) -> Any:
        torch.manual_seed(1)
        if issubclass(self.dataset, Plain) and self.sampler != "none":
            more["sampler"] = SAMPLERS[self.sampler]()
        return kind(
            self.dataset(),
            batch_size=self.batch_size,
            num_workers=self.workers,
            persistent_workers=self.persistent,
            snapshot_every_n_steps=self.every,
            generator=torch.Generator().manual_seed(9),
            collate_fn=list if self.batch_size else None,
            **more,
        )


def draw(seed: int, workers: tuple[int, ...] = (0, 1, 2, 3)) -> Case:
    of = random.Random(seed)
    count = of.choice(workers)
    return Case(
        dataset=of.choice(MAPS + STREAMS),
        sampler=of.choice(list(SAMPLERS)),
        workers=count,
        persistent=count > 0 and of.random() < 0.5,
        batch_size=of.choice((None, 4)),
        every=of.choice((1, 1, 2, 5, 0)),
        epoch=of.choice((0, 0, 1)),
        stop=of.choice((-1, 0, 1, 3, 5, None)),
        moved=of.choice((None, None, 2)),
    )


def take(iterator: Any, count: int) -> list[Any]:
    return [batch for _, batch in zip(range(count), iterator, strict=False)]


def interrupted_at(case: Case, kind: Any) -> tuple[Any, Any, Any]:
    """Returns the loader, its iterator if an epoch is running, and its state."""
    loader = case.loader(kind)
    for _ in range(case.epoch):
        list(loader)
    iterator = None
    if case.stop is None:
        list(loader)
    elif case.stop >= 0:
        iterator = iter(loader)
        take(iterator, case.stop)
    return loader, iterator, copy.deepcopy(loader.state_dict())


def rest_of(loader: Any, iterator: Any, epochs: int) -> list[Any]:
    """Returns the rest of the epoch, and the next epoch."""
    return [list(loader if iterator is None else iterator)] + [list(loader) for _ in range(epochs)]


def outcomes(case: Case, kind: Any) -> tuple[Any, Any]:
    """Returns the results of a run that continues, and of one that is resumed in a new process with other global
    generators.
    """
    loader, iterator, state = interrupted_at(case, kind)
    epochs = 1 if case.persistent or not case.workers else 0
    expected = rest_of(loader, iterator, epochs)
    if case.moved is None:
        resumed = case.loader(kind)
    else:
        resumed, iterator, state = interrupted_at(case, kind)
        take(iter(resumed) if iterator is None else iterator, case.moved)
    torch.manual_seed(2)
    resumed.load_state_dict(state)
    return expected, rest_of(resumed, None, epochs)
