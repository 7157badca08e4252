# SPDX-License-Identifier: Apache-2.0
"""A loader's position as JSON: how the epoch's order was drawn, and how many of its batches were delivered.

To resume, the order is replayed from the saved random generators without reading samples, so a loader can resume with
any number of workers. Samplers with a `state_dict` are saved after each index, and their order is not replayed. A state
contains only the generators from which the order is drawn, so that states at the same position are equal even if other
code draws random numbers. Each dataset state belongs to one worker: the loader's state has an entry per worker, with
the dataset's state if it has one, or otherwise a number of batches to skip.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import random
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data.dataloader import _InfiniteConstantSampler
from torch.utils.data.distributed import DistributedSampler
from torch.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from ...errors import ConfigError
from ...samplers.buckets import BucketBatchSampler
from ...samplers.distributed import DistributedSampler as ExactSampler
from ...version import from_the_future, installed_version
from ..fetching import fetch
from ..fetching.stream_libraries import check_version, is_of_datasets, library_of
from ..options.settings import Order, Settings

VERSION = 2
_READABLE = (1, 2)
_REQUIRED = {"kind", "epoch", "delivered", "samplers", "sampler_epochs"}
_KNOWN_SAMPLERS = (RandomSampler, WeightedRandomSampler, SubsetRandomSampler)  # draw only from their `generator`
_FIXED_SAMPLERS = (
    SequentialSampler,
    DistributedSampler,
    ExactSampler,
    BucketBatchSampler,
    _InfiniteConstantSampler,
)  # draw nothing


class Cursor:
    """The position within one epoch."""

    def __init__(self, epoch: int, workers: int) -> None:
        self.epoch = epoch
        self.delivered = 0
        self.finished = False
        self.base_seed: int | None = None  # the workers'
        self.randomness: dict[str, Any] | None = None  # taken right before the first index is drawn
        self.replay: dict[str, Any] | None = None  # its JSON form, from the state that this resumes from
        self.samplers: list[Any] = []  # states at the start of the order; of stateful samplers, after the last index
        self.ended: dict[str, Any] | None = None  # until a batch is delivered: `samplers` are the previous epoch's,
        # with this randomness
        self.epochs: list[int | None] = []
        self.ends: dict[int, Any] = {}  # persistent worker -> its dataset's state after the last batch
        self.taken = 0  # with central_batching: delivered samples of those that workers had left at the end
        self.keeps_indices = False  # the indices after a worker's last state, if the order is not replayed
        self.fetcher: fetch.Fetcher | None = None  # this process's, if its dataset has a state
        self.last_index: Any = None  # the delivered index that is furthest in the order
        self.waiting: list[Any] = []  # with in_order=False: earlier indices whose batches have not arrived
        self.refill_end: int | None = None
        self.last_worker = workers - 1
        self.by_worker: list[dict[str, Any]] = [
            {"batches": 0, "state": None, "since": 0} for _ in range(max(workers, 1))
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Returns the attributes for pickle and copy: all except an iterator over a dataset, which belongs to this
        process.
        """
        return {**self.__dict__, "fetcher": None}

    def randomness_in_words(self, settings: Settings) -> dict[str, Any]:
        if self.randomness is None and self.replay is not None:
            return self.replay
        return _randomness_to_json(self.randomness or take_randomness(settings))

    def own_state(self) -> dict[str, Any] | None:
        """Returns the state of the dataset in this process."""
        return None if self.fetcher is None else self.fetcher.state()

    def passed(self) -> int:
        """Returns the number of indices that a resumed loader skips in the order."""
        return self.delivered + len(self.waiting)

    def advance(self, index: Any, samplers: list[Any] | None = None, is_furthest: bool | None = None) -> None:
        """Records that the batch for `index` was delivered, or was skipped because it raised an error.

        Args:
            samplers: the states of stateful samplers after `index`.
            is_furthest: whether no later batch in the order was delivered before; the caller then sets `waiting`. None:
                batches arrive in order, beginning with those in `waiting`.
        """
        self.delivered += 1
        if is_furthest is None:
            is_furthest = not self.waiting
            del self.waiting[:1]
        if is_furthest:
            self.last_index = index
            self.samplers = samplers or self.samplers

    def deliver(
        self,
        worker: int,
        index: Any,
        more: Mapping[str, Any],
        samplers: list[Any] | None = None,
        is_furthest: bool | None = None,
    ) -> None:
        """Like :meth:`advance`. `more`: additional data that `worker` sent with the batch."""
        self.advance(index, samplers, is_furthest)
        self.last_worker = worker
        entry = self.by_worker[worker]
        entry["batches"] += 1
        if "state" in more:
            entry["state"], entry["since"] = more["state"], 0
            entry.pop("again", None)
        else:
            entry["since"] += 1
            if self.keeps_indices:
                entry["again"] = [*entry.get("again", ()), plain(index)]


def generators_of(order: Order) -> list[torch.Generator]:
    """Returns the explicit generators from which the order may be drawn, without duplicates, in a fixed order."""
    sampler, batch_sampler = order.sampler, order.batch_sampler
    found = [order.generator, getattr(sampler, "generator", None), getattr(batch_sampler, "generator", None)]
    found.append(getattr(getattr(batch_sampler, "sampler", None), "generator", None))
    unique: list[torch.Generator] = []
    for generator in found:
        if isinstance(generator, torch.Generator) and all(generator is not u for u in unique):
            unique.append(generator)
    return unique


def samplers_of(order: Order) -> list[Any]:
    """Returns the sampler, the batch sampler and the batch sampler's own sampler, without duplicates."""
    found: list[Any] = []
    for sampler in (order.sampler, order.batch_sampler, getattr(order.batch_sampler, "sampler", None)):
        if sampler is not None and all(sampler is not f for f in found):
            found.append(sampler)
    return found


def draws_globally(order: Order) -> bool:
    """Returns whether the order may be drawn from the process's global generators."""
    sampler = order.sampler if order.batch_sampler is None else order.batch_sampler
    if type(sampler) is BatchSampler:
        sampler = sampler.sampler
    if type(sampler) in _KNOWN_SAMPLERS:
        return sampler.generator is None
    return type(sampler) not in _FIXED_SAMPLERS


def take_randomness(settings: Settings) -> dict[str, Any]:
    """Returns the states of all generators from which the order may be drawn, except those seeded in every epoch."""
    explicit = [] if settings.seeds_order else generators_of(settings.order)
    taken: dict[str, Any] = {"generators": [g.get_state() for g in explicit]}
    if draws_globally(settings.order):
        taken |= {"torch": torch.get_rng_state(), "python": random.getstate(), "numpy": np.random.get_state()}
    return taken


def are_there(taken: Mapping[str, Any]) -> bool:
    """Returns whether the process's global generators still have the saved states."""
    mersenne, counters, words = fetch.generator_states()
    name, keys, *rest = taken["numpy"]
    same = mersenne == tuple(taken["python"]) and torch.equal(words, taken["torch"])
    return same and (counters[0], *counters[2:]) == (name, *rest) and bool(np.array_equal(counters[1], keys))


def put_randomness(order: Order, taken: Mapping[str, Any]) -> None:
    if "torch" in taken:
        fetch.put_generator_states((taken["python"], taken["numpy"], taken["torch"]))
    for generator, state in zip(generators_of(order), taken["generators"], strict=False):
        generator.set_state(state)


def put_generators(order: Order, words: list[str] | None) -> None:
    for generator, one in zip(generators_of(order), words or [], strict=False):
        generator.set_state(tensor_of(one))


def take_samplers(order: Order) -> tuple[list[Any], list[int | None]]:
    """Returns the states of stateful samplers, and the samplers' epochs."""
    samplers = samplers_of(order)
    return [fetch.state_of(sampler) for sampler in samplers], [_epoch_of(sampler) for sampler in samplers]


def _epoch_of(sampler: Any) -> int | None:
    """Returns the epoch to which a sampler was set; None if its order does not depend on an epoch."""
    epoch = getattr(sampler, "epoch", None)
    return epoch if isinstance(epoch, int) and callable(getattr(sampler, "set_epoch", None)) else None


def are_stateful(order: Order) -> bool:
    """Returns whether any sampler has a state."""
    return any(fetch.is_stateful(sampler) for sampler in samplers_of(order))


def put_samplers(order: Order, states: list[Any], epochs: list[int | None]) -> None:
    for sampler, epoch in zip(samplers_of(order), epochs, strict=False):
        if epoch is not None:
            sampler.set_epoch(epoch)
    load_samplers(order, states)


def load_samplers(order: Order, states: list[Any]) -> None:
    for sampler, state in zip(samplers_of(order), states, strict=False):
        if state is not None:
            sampler.load_state_dict(copy.deepcopy(state))


def plain(index: Any) -> Any:
    """Returns a batch's indices, as numbers if they are a tensor."""
    return index.tolist() if isinstance(index, torch.Tensor) else index


def fingerprint(index: Any) -> int | None:
    return None if index is None else zlib.crc32(repr(plain(index)).encode())


def to_json(cursor: Cursor, settings: Settings, own: dict[str, Any] | None) -> dict[str, Any]:
    """Returns the state after the last delivered batch. `own`: the dataset's state if there are no workers."""
    state = _common(settings, cursor.epoch, cursor.base_seed) | {"begun": True}
    state |= {"delivered": cursor.delivered, "samplers": cursor.samplers, "sampler_epochs": cursor.epochs}
    state |= {"refill_end": cursor.refill_end}
    state["randomness"] = cursor.randomness_in_words(settings)
    state["drawn"] = cursor.randomness is not None
    state["last_index"] = fingerprint(cursor.last_index) if cursor.delivered else None
    if cursor.taken:
        state["taken"] = cursor.taken
    if cursor.waiting:
        state["waiting"] = [plain(index) for index in cursor.waiting]
    if cursor.ended is not None and not cursor.delivered:
        state["ended"] = cursor.ended
    if settings.iterable or own is not None or any(w["state"] is not None for w in cursor.by_worker):
        workers = copy.deepcopy(cursor.by_worker)
        if own is not None:
            workers[0] |= {"state": own, "since": 0}
        state |= {"workers": workers, "last_worker": cursor.last_worker}
    elif fetch.is_stateful(settings.dataset):
        state |= {"workers": copy.deepcopy(cursor.by_worker), "last_worker": cursor.last_worker}
    return state


def of_next_epoch(
    cursor: Cursor | None, epoch: int, settings: Settings, own: dict[str, Any] | None, base_seed: int | None
) -> dict[str, Any]:
    """Returns the state between epochs, from which `epoch` begins.

    Args:
        cursor: position in the epoch that has ended, if any.
        own: the dataset's state if there are no workers.
        base_seed: the base seed of persistent workers; if None, it is drawn when the epoch begins.
    """
    order = settings.order
    samplers, epochs = take_samplers(order)
    with _with_base_seed(order, base_seed) as seed:
        state = _common(settings, epoch, seed if settings.num_workers else None)
        state["randomness"] = _randomness_to_json(take_randomness(settings))
    state |= {"delivered": 0, "refill_end": None, "last_index": None, "drawn": False}
    workers: list[dict[str, Any]] = []
    if cursor is None:
        workers = [{"batches": 0, "state": own, "since": 0}] if own is not None else []
    else:
        # The next epoch is the one that the loader would begin without set_epoch.
        epochs = [None if epoch is None else epoch + 1 for epoch in epochs]
        if are_stateful(order):
            samplers = cursor.samplers
            state["ended"] = cursor.randomness_in_words(settings)
        ends = {0: own} if own is not None else cursor.ends if settings.persistent_workers else {}
        if any(end is not None for end in ends.values()):
            places = range(max(1, settings.num_workers))
            workers = [{"batches": 0, "state": ends.get(w), "since": 0, "ended": True} for w in places]
    state |= {"samplers": samplers, "sampler_epochs": epochs}
    if workers:
        state |= {"workers": copy.deepcopy(workers), "last_worker": settings.num_workers - 1}
    return state


def _common(settings: Settings, epoch: int, base_seed: int | None) -> dict[str, Any]:
    kind, workers = "iterable" if settings.iterable else "map", settings.num_workers
    state = {"version": VERSION, "feedline": installed_version(), "kind": kind, "epoch": epoch}
    state |= {"base_seed": base_seed, "num_workers": workers}
    if settings.iterable:
        state |= library_of(settings.dataset)
        if is_of_datasets(settings.dataset) and hasattr(settings.dataset, "epoch"):
            state["dataset_epoch"] = int(settings.dataset.epoch)
    return state


@contextlib.contextmanager
def _with_base_seed(order: Order, known: int | None) -> Iterator[int]:
    """Sets the generators to their state after iter(), which draws a base seed unless the seed is known. Restores the
    generators on exit.
    """
    if known is not None:
        yield known
        return
    generator = order.generator
    before = torch.get_rng_state() if generator is None else generator.get_state()
    try:
        yield int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())
    finally:
        torch.set_rng_state(before) if generator is None else generator.set_state(before)


def meet_end(settings: Settings, samplers: list[Any]) -> None:
    """Moves samplers past the epoch's last index. They may already be past it, because a short last batch requests one
    more index.
    """
    load_samplers(settings.order, samplers)
    for _ in settings.index_sampler:  # if they are, this index belongs to the next epoch
        load_samplers(settings.order, samplers)
        return


def drain(settings: Settings, pending: Mapping[str, Any]) -> None:
    """Moves stateful samplers to the end of the state's epoch, so that the next epoch begins as usual."""
    before = fetch.generator_states()
    order = settings.order
    generators = [g.get_state() for g in generators_of(order)]
    try:
        put_randomness(order, randomness_of(pending["ended"]))
        meet_end(settings, pending["samplers"])
    finally:
        fetch.put_generator_states(before)
        for generator, one in zip(generators_of(order), generators, strict=True):
            generator.set_state(one)


def check(state: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Validates `state`. Raises ConfigError if `state` is not a state of a loader like this one."""
    version = state.get("version") if isinstance(state, Mapping) else None
    if type(version) is int and version > VERSION and ("feedline" in state or state.keys() >= _REQUIRED):
        readable = f"states of versions {_READABLE[0]} to {VERSION}"
        raise ConfigError(f"load_state_dict: {from_the_future('this state', version, state.get('feedline'), readable)}")
    if not isinstance(state, Mapping) or not state.keys() >= _REQUIRED or not _is_plain(state):
        raise ConfigError(f"load_state_dict: this is not a state of feedline.DataLoader: {state!r:.80}")
    kind = "iterable" if settings.iterable else "map"
    if state["kind"] != kind:
        raise ConfigError(
            f"load_state_dict: the state is for a {state['kind']}-style dataset, but this loader has a "
            f"{kind}-style dataset"
        )
    _check_samplers(state, settings.order)
    workers = state.get("workers", ())
    within = state["delivered"] or any(w["state"] is not None and not w.get("ended") for w in workers)
    if kind == "iterable" and within and state["num_workers"] != settings.num_workers and "counted" not in state:
        raise ConfigError(
            f"load_state_dict: the position in an iterable dataset is saved per worker; the state has "
            f"{state['num_workers']} worker(s) and this loader {settings.num_workers}. Resume with the same "
            "num_workers to resume within an epoch"
        )
    if settings.iterable:
        check_version(state, settings.dataset)
    return copy.deepcopy(dict(state))


def _is_plain(state: Mapping[str, Any]) -> bool:
    """Returns whether the required entries have the right types."""
    version, delivered = state.get("version"), state["delivered"]
    return (
        isinstance(version, int)
        and version in _READABLE
        and type(delivered) is int
        and delivered >= 0
        and all(isinstance(state[name], list) for name in ("samplers", "sampler_epochs"))
    )


def _check_samplers(state: Mapping[str, Any], order: Order) -> None:
    """Raises ConfigError if the state was saved with samplers of another kind, whose order would differ."""
    samplers, states, epochs = samplers_of(order), state["samplers"], state["sampler_epochs"]
    names = ", ".join(type(sampler).__name__ for sampler in samplers) or "none"
    if not len(samplers) == len(states) == len(epochs):
        raise ConfigError(
            f"load_state_dict: the state was saved by a loader with {len(states)} sampler(s), this loader has "
            f"{len(samplers)} ({names}). Resume with the same kind of sampler"
        )
    for sampler, taken, epoch in zip(samplers, states, epochs, strict=True):
        for had, has, methods in (
            (epoch is not None, _epoch_of(sampler) is not None, "set_epoch()"),
            (taken is not None, fetch.is_stateful(sampler), "state_dict() and load_state_dict()"),
        ):
            if had != has:
                raise ConfigError(
                    f"load_state_dict: the state was saved with a sampler that has {'' if had else 'no '}{methods}, "
                    f"but this loader's {type(sampler).__name__} has {'them' if has else 'none'}. Resume with the same "
                    "kind of sampler"
                )


def _words(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def tensor_of(words: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(words)), dtype=torch.uint8)


def _randomness_to_json(taken: Mapping[str, Any]) -> dict[str, Any]:
    words: dict[str, Any] = {"generators": [_words(state) for state in taken["generators"]]}
    if "torch" not in taken:
        return words
    version, internal, gauss = taken["python"]
    name, keys, position, has_gauss, cached = taken["numpy"]
    return words | {
        "torch": _words(taken["torch"]),
        "python": [version, base64.b64encode(np.array(internal, dtype="<u4").tobytes()).decode(), gauss],
        "numpy": [name, base64.b64encode(keys.astype("<u4").tobytes()).decode(), position, has_gauss, cached],
    }


def randomness_of(state: Mapping[str, Any]) -> dict[str, Any]:
    taken: dict[str, Any] = {"generators": [tensor_of(g) for g in state["generators"]]}
    if "torch" not in state:
        return taken
    version, internal, gauss = state["python"]
    name, keys, position, has_gauss, cached = state["numpy"]
    words = np.frombuffer(base64.b64decode(internal), dtype="<u4")
    counters = np.frombuffer(base64.b64decode(keys), dtype="<u4").astype(np.uint32)
    return taken | {
        "torch": tensor_of(state["torch"]),
        "python": (version, tuple(int(w) for w in words), gauss),
        "numpy": (name, counters, position, has_gauss, cached),
    }
