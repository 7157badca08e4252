# SPDX-License-Identifier: Apache-2.0
"""Datasets for the drop-in's tests. They are at module level, so that spawned workers can import them."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class Numbers(Dataset):
    """Sample i is i."""

    def __init__(self, count: int = 40) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index):
        return index


class Counted(Numbers):
    """Counts the samples that were read, in any process."""

    def __init__(self, count: int = 40) -> None:
        super().__init__(count)
        self.read = multiprocessing.Value("i", 0)

    def __getitem__(self, index):
        with self.read:
            self.read.value += 1
        return super().__getitem__(index)


class Large(Numbers):
    """Sample i is a tensor of `size` floats, all i: large enough for the ring."""

    def __init__(self, count: int = 40, size: int = 50_000) -> None:
        super().__init__(count)
        self.size = size

    def __getitem__(self, index):
        return torch.full((self.size,), float(index))


class Failing(Numbers):
    """Raises `error` for the samples in `bad`."""

    def __init__(self, count, bad, error) -> None:
        super().__init__(count)
        self.bad, self.error = bad, error

    def __getitem__(self, index):
        if index in self.bad:
            raise self.error
        return index


class Files(Failing):
    """Like torchvision's folders, it keeps (path, class) pairs."""

    def __init__(self, count, bad, error) -> None:
        super().__init__(count, bad, error)
        self.samples = [(f"/data/{i}.jpg", 0) for i in range(count)]


class Dying(Large):
    """Its worker dies by `how` at sample `at`, once: the file `mark` shows that this has happened."""

    def __init__(self, mark, at=9, how=signal.SIGKILL, always=False) -> None:
        super().__init__()
        self.mark, self.at, self.how, self.always = str(mark), at, how, always

    def __getitem__(self, index):
        if index == self.at and (self.always or not os.path.exists(self.mark)):
            Path(self.mark).touch()
            os.kill(os.getpid(), self.how)
            time.sleep(600)
        return super().__getitem__(index)


class Hanging(Numbers):
    def __getitem__(self, index):
        if index == 9:
            time.sleep(300)
        return index


class Augmented(Numbers):
    """Every sample consists of three random numbers, one from each generator."""

    def __getitem__(self, index):
        return index, random.random(), float(np.random.rand()), torch.rand(1).item()


class Epochs(Numbers):
    """Every sample is the epoch number in its worker."""

    def __init__(self, count=8) -> None:
        super().__init__(count)
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __getitem__(self, index):
        return self.epoch


class Stream(IterableDataset):
    """0, 1, 2 ..., sharded over workers unless requested otherwise."""

    def __init__(self, count=40, sharded=True) -> None:
        self.count, self.sharded = count, sharded

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info is not None and self.sharded else (0, 1)
        return iter(range(first, self.count, step))


class ResumableStream(Stream):
    """Has its own position; counts the items since it was created."""

    def __init__(self, count=40) -> None:
        super().__init__(count)
        self.position, self.made = 0, 0

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]

    def __iter__(self):
        items = list(super().__iter__())
        while self.position < len(items):
            self.position += 1
            self.made += 1
            yield torch.tensor([items[self.position - 1], self.made])
        self.position = 0


class FlakyStream(IterableDataset):
    """An iterator, not a generator: it can continue after an error."""

    def __iter__(self):
        return _Flaky()


class _Flaky:
    def __init__(self) -> None:
        self.at = -1

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        if self.at >= 20:
            raise StopIteration
        if self.at == 5:
            raise ValueError("item five is broken")
        return self.at


class BrokenGenerator(IterableDataset):
    def __iter__(self):
        yield from range(5)
        raise ValueError("the generator broke")


class Arguments(Exception):
    """Its __init__ takes two arguments, so it cannot be created from a message alone."""

    def __init__(self, path, reason) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


class Unpicklable(Numbers):
    def __init__(self) -> None:
        super().__init__()
        self.callback = lambda index: index


class Paths(Numbers):
    """Has a long list; counts how often it was pickled."""

    def __init__(self) -> None:
        super().__init__(8)
        self.paths = [f"/data/train/{i:07}.jpg" for i in range(100_000)]
        self.pickled = 0

    def __getstate__(self):
        self.pickled += 1
        return self.__dict__


class Scalars(Numbers):
    """A sample of twenty small fields."""

    def __getitem__(self, index):
        return {f"field_{k}": float(index * k) for k in range(20)}


def flatten(batches):
    """The numbers in a list of batches of numbers."""
    return [int(x) for batch in batches for x in batch]
