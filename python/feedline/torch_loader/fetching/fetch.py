# SPDX-License-Identifier: Apache-2.0
"""Reads and collates batches in any process or thread: tracks the current sample, handles bad samples, and seeds
generators.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import inspect
import random
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.random  # imported here, since NumPy's lazy import would delay the first iter()
import torch

from ...data import draws
from ...data.dataset import Dataset
from ...errors import ConfigError
from .failures import Failure, sample_path
from .own_generators import NONE, own_generators
from .stream_libraries import loses_its_buffer

Notice = Callable[[int, Any], None]  # (stage, sample)
STAGES = ("waiting for a task", "starting", "worker_init_fn", "reading a sample", "collate_fn", "handing over")
WAITING, STARTING, INIT, READING, COLLATING, SENDING = range(6)
_REPLACEMENT_TRIES = 100  # with more bad samples than this in a row, the dataset is unusable


@dataclass(frozen=True)
class FetchConfig:
    """The settings of a fetcher."""

    iterable: bool
    auto_collation: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    on_error: str = "raise"
    seed: int | None = None
    leaves_short: bool = False  # a stream's incomplete batch is returned as a list of samples
    seeds_transforms: bool = False  # also seeds the transforms' own generators; requires that no other thread uses them


class BadSamplesError(Exception):
    """Raised with on_error="skip": lists the bad samples that the loader must replace, each as (position in the batch,
    failure).
    """

    def __init__(self, bad: list[tuple[int, Failure]]) -> None:
        super().__init__(bad)
        self.bad = bad


class Gatherer:
    """Receives a batch's samples as they are read. The base class does nothing; a subclass in gather.py copies samples
    into the batch.
    """

    def begin(self, count: int) -> None:
        """Starts a batch of at most `count` samples."""

    def add(self, sample: Any) -> Any:
        """Returns an object that replaces `sample` until the batch is collated."""
        return sample

    def end(self) -> None:
        """Called when the batch has been collated or abandoned."""


def make_fetcher(
    config: FetchConfig,
    dataset: Any,
    epoch: int,
    worker: int | None,
    notice: Notice,
    gatherer: Gatherer | None = None,
) -> Fetcher:
    kind = IterableFetcher if config.iterable else MapFetcher
    return kind(config, dataset, epoch, worker, notice, gatherer or Gatherer())


class Fetcher:
    """Attributes:
    bad: bad samples that the last fetch skipped or replaced.
    """

    def __init__(
        self,
        config: FetchConfig,
        dataset: Any,
        epoch: int,
        worker: int | None,
        notice: Notice,
        gatherer: Gatherer,
    ) -> None:
        self.config, self.dataset, self.epoch, self.worker, self.notice = (
            config,
            dataset,
            epoch,
            worker,
            notice,
        )
        self._gatherer = gatherer
        seeds_transforms = config.seed is not None and config.seeds_transforms
        self._generators = own_generators(dataset, config.collate_fn) if seeds_transforms else NONE
        self.bad: list[Failure] = []
        self.is_short = False  # the last fetch returned a list of samples, too few for a batch
        self.sample: Any = None  # the sample being read, for the error message

    def fetch(self, index: Any) -> Any:
        """Returns the batch of the indices in `index`, or the single sample `index`."""
        try:
            with draws.by_a_loader():
                return self._fetch(index)
        finally:
            self._gatherer.end()

    def _fetch(self, index: Any) -> Any:
        raise NotImplementedError

    def skip(self, batches: int, size: int | None) -> None:
        """Skips batches of a stream that were already delivered. Does nothing if samples have indices."""

    def is_stateful(self) -> bool:
        """Returns whether :meth:`state` returns a state."""
        return is_stateful(self.dataset)

    def fetch_and_drop(self, index: Any) -> None:
        """Reads a batch that was already delivered, to restore the dataset's state. Errors are ignored, because they
        were raised when the batch was delivered.
        """
        with contextlib.suppress(Exception):
            self.fetch(index)

    def state(self) -> dict[str, Any] | None:
        state = state_of(self.dataset)
        return None if state is None else {"dataset": state}

    def failure(self, error: BaseException) -> Failure:
        where = "in DataLoader" if self.worker is None else f"in DataLoader worker process {self.worker}"
        path = None if self.config.iterable else sample_path(self.dataset, self.sample)
        return Failure(error, where, self.worker, self.sample, path)

    def seed(self, *key: Any) -> None:
        """Seeds the generators for a part of the epoch if the loader has a seed."""
        if self.config.seed is None:
            return
        seed = seed_everything(self.config.seed, self.epoch, *key)
        if self._generators.seeds:
            self._generators.put(seed)

    def _collate(self, samples: Any, index: Any) -> Any:
        self.notice(COLLATING, index[0] if isinstance(index, list) and index else index)
        self.seed("collate", index)
        self.sample = index
        try:
            return self.config.collate_fn(samples)
        except Exception as error:
            if self.config.auto_collation and isinstance(samples, list):
                error.add_note(
                    f"Feedline: this error occurred while collating the samples {index!r:.500}{unequal_shapes(samples)}"
                )
            raise


class MapFetcher(Fetcher):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._getitems = getitems_of(self.dataset)

    def _fetch(self, index: Any) -> Any:
        self.bad = []
        if not self.config.auto_collation:
            self.sample = index
            self.notice(READING, index)
            self.seed(index)
            return self._collate(self.dataset[index], index)
        self.sample = index
        if self.config.on_error != "raise":
            return self._collate(self._good_samples(index), index)
        if self._getitems is not None:
            self.notice(READING, index[0] if isinstance(index, list) and index else None)
            self.seed(index)
            try:
                samples = self._getitems(index)
            except Exception as error:
                self.sample = _sample_at_work(error, index)
                raise
            return self._collate(samples, index)
        samples = []
        self._gatherer.begin(len(index))
        for sample in index:
            self.sample = sample
            samples.append(self._gatherer.add(self._read(sample)))
        return self._collate(samples, index)

    def _read(self, sample: Any) -> Any:
        self.notice(READING, sample)
        self.seed(sample)
        return self.dataset[sample]

    def _good_samples(self, index: Any) -> list[Any]:
        samples, bad = [], []
        self._gatherer.begin(len(index))
        for position, sample in enumerate(index):
            self.sample = sample
            try:
                samples.append(self._gatherer.add(self._read(sample)))
            except Exception as error:
                failure = self.failure(error)
                bad.append((position, failure))
                if self.config.on_error == "replace":
                    samples.append(self._gatherer.add(self._replacement(sample, error)))
        self.bad = [failure for _, failure in bad]
        if bad and self.config.on_error == "skip":
            raise BadSamplesError(bad)
        return samples

    def _replacement(self, sample: Any, error: Exception) -> Any:
        try:
            count = len(self.dataset)
            candidates = [(sample + step) % count for step in range(1, min(count, _REPLACEMENT_TRIES + 1))]
        except TypeError:
            raise error from None
        for candidate in candidates:
            with contextlib.suppress(Exception):
                return self._read(candidate)
        raise error


class IterableFetcher(Fetcher):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._count = 0
        self.seed("iter", self.worker)
        self._iterator: Iterator[Any] = iter(self.dataset)
        self._ended = False

    def _fetch(self, index: Any) -> Any:
        self.bad = []
        if self._ended:
            raise StopIteration
        if not self.config.auto_collation:
            sample = self._next()
            return self._collate(sample, self._count - 1)
        samples: list[Any] = []
        self._gatherer.begin(len(index))
        for _ in index:
            try:
                samples.append(self._gatherer.add(self._next()))
            except StopIteration:
                self._ended = True
                break
        self.is_short = self.config.leaves_short and 0 < len(samples) < len(index)
        if self.is_short:
            return samples
        if not samples or (self.config.drop_last and len(samples) < len(index)):
            raise StopIteration
        return self._collate(samples, list(range(self._count - len(samples), self._count)))

    def _next(self) -> Any:
        while True:
            self.sample = self._count
            self.notice(READING, self._count)
            self.seed(self.worker, self._count)
            self._count += 1
            try:
                return next(self._iterator)
            except StopIteration:
                self._count -= 1
                raise
            except Exception as error:
                # A generator that raised has ended: continuing would silently shorten the data.
                if self.config.on_error == "raise" or isinstance(self._iterator, types.GeneratorType):
                    raise
                self.bad.append(self.failure(error))
                if len(self.bad) > _REPLACEMENT_TRIES:
                    raise

    def is_stateful(self) -> bool:
        return is_stateful(self.dataset) or is_stateful(self._iterator)

    def skip(self, batches: int, size: int | None) -> None:
        with contextlib.suppress(StopIteration):
            for _ in range(batches * (1 if size is None else size)):
                self._next()

    def state(self) -> dict[str, Any] | None:
        iterator, dataset = state_of(self._iterator), None
        if self._iterator is not self.dataset:  # a dataset that is its own iterator is saved once, and loaded after
            # iter()
            dataset = state_of(self.dataset)
        if dataset is None and iterator is None:
            return None
        return {"dataset": dataset, "iterator": iterator, "ended": self._ended, "count": self._count}

    def restore(self, state: dict[str, Any]) -> None:
        self._count, self._ended = state.get("count", 0), state.get("ended", False)
        if state.get("iterator") is not None and is_stateful(self._iterator):
            self._iterator.load_state_dict(state["iterator"])  # type: ignore[attr-defined]


def _sample_at_work(error: BaseException, indices: Any) -> Any:
    """Returns the element of `indices` that `__getitems__` was reading when it raised `error`, found from the
    function's loop variable; all `indices` if the element is unknown.
    """
    with contextlib.suppress(Exception):
        frame = error.__traceback__
        while frame is not None:
            for name in ("idx", "index", "i", "item"):
                value = frame.tb_frame.f_locals.get(name)
                if type(value) is int and value in indices:
                    return value
            frame = frame.tb_next
    return indices


def state_of(thing: Any) -> Any:
    """Returns a copy of the state of `thing`, because many objects later modify the dictionary that they returned."""
    return copy.deepcopy(thing.state_dict()) if is_stateful(thing) else None


def load_dataset_state(dataset: Any, state: Any) -> None:
    """Raises:
    ConfigError: the dataset has no `load_state_dict` method, but the dataset whose state was saved had one.
    """
    if not callable(getattr(dataset, "load_state_dict", None)):
        raise ConfigError(
            "load_state_dict: the state contains the state of a dataset, but this loader's dataset, "
            f"{type(dataset).__name__}, has no load_state_dict(). Resume with the dataset that was saved"
        )
    dataset.load_state_dict(state)


def is_stateful(thing: Any) -> bool:
    """Returns whether `thing` has torchdata's protocol, `state_dict()` and `load_state_dict(state)`.

    Some libraries define methods with these names that require more arguments, such as the number of delivered samples.
    Only the libraries' own loaders can pass such arguments. A stream whose states omit samples counts as stateless: to
    resume, its samples are read and dropped.
    """
    if not _takes(getattr(thing, "state_dict", None)) or not _takes(getattr(thing, "load_state_dict", None), {}):
        return False
    return not loses_its_buffer(thing)


def _takes(method: Any, *arguments: Any) -> bool:
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # written in C, without a signature
        pass
    return True


def getitems_of(dataset: Any) -> Callable[[Any], Any] | None:
    """Returns `dataset.__getitems__`, unless a subclass overrides only `__getitem__`, in which case `__getitem__`
    determines the samples.

    Also returns None for Feedline's own datasets, since reading their samples one by one returns the same samples, each
    with its own seed.
    """
    getitems = getattr(dataset, "__getitems__", None)
    inner = dataset
    while type(inner) is torch.utils.data.Subset:
        inner = inner.dataset
    if not getitems or type(inner) is Dataset:
        return None
    order = type(dataset).__mro__
    batched = next((i for i, c in enumerate(order) if "__getitems__" in vars(c)), -1)
    single = next((i for i, c in enumerate(order) if "__getitem__" in vars(c)), len(order))
    return getitems if batched <= single else None


def seed_of(*key: Any) -> int:
    """Returns a 63-bit hash of `key`."""
    return int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest(), "little") >> 1


def seed_everything(*key: Any) -> int:
    """Seeds `random`, NumPy and torch from `key`, which results in the same numbers in any worker, thread or process.

    Returns:
        The 63-bit seed.
    """
    seed = seed_of(*key)
    random.seed(seed)
    np.random.seed(seed >> 31)
    torch.default_generator.manual_seed(seed)
    return seed


def generator_states() -> tuple[Any, Any, Any]:
    """Returns the states of the process's global generators."""
    return random.getstate(), np.random.get_state(), torch.get_rng_state()


def put_generator_states(states: tuple[Any, Any, Any]) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])


@contextlib.contextmanager
def untouched_generators() -> Iterator[None]:
    """Restores the states of the process's global generators on exit."""
    states = generator_states()
    try:
        yield
    finally:
        put_generator_states(states)


def unequal_shapes(samples: list[Any], path: str = "") -> str:
    """Describes the first field that differs in shape or keys between samples, which is the usual cause of collate
    errors.
    """
    if not samples:
        return ""
    first = samples[0]
    with contextlib.suppress(Exception):
        if hasattr(first, "shape"):
            shapes = [tuple(s.shape) for s in samples]
            return f"; field {path or 'sample'} has the shapes {shapes!r:.500}" if len(set(shapes)) > 1 else ""
        if isinstance(first, dict):
            keys = [sorted(map(str, s)) for s in samples]
            if any(k != keys[0] for k in keys):
                return f"; field {path or 'sample'} has the keys {keys!r:.500}"
            found = [unequal_shapes([s[k] for s in samples], f"{path}[{k!r}]") for k in first]
            return next(filter(None, found), "")
        if isinstance(first, (list, tuple)):
            lengths = [len(s) for s in samples]
            if len(set(lengths)) > 1:
                return f"; field {path or 'sample'} has the lengths {lengths!r:.500}"
            found = [unequal_shapes([s[i] for s in samples], f"{path}[{i}]") for i in range(len(first))]
            return next(filter(None, found), "")
    return ""
