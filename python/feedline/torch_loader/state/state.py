# SPDX-License-Identifier: Apache-2.0
"""Where a loader stands, as JSON: how the epoch's order came about, and how many batches of it were delivered.

Resuming replays the order (indices alone, no sample is read) with the random generators as they were, so it needs no
particular number of workers. Samplers that have a state of their own are asked after each index, and nothing is
replayed. Only what the order is drawn from is in the state, so that states of the same point are equal, whatever else
draws. What datasets say of themselves is of one worker each: there the state has one entry per worker, with the
dataset's own state where it has one, or a number of batches to pass over.
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
from ..fetching import fetch
from ..fetching.stream_libraries import check_version, is_of_datasets, library_of
from ..options.settings import Order, Settings

VERSION = 2
_READABLE = (1, 2)
_REQUIRED = {"kind", "epoch", "delivered", "samplers", "sampler_epochs"}
_KNOWN_SAMPLERS = (RandomSampler, WeightedRandomSampler, SubsetRandomSampler)  # draw from their `generator` alone
_FIXED_SAMPLERS = (
    SequentialSampler,
    DistributedSampler,
    ExactSampler,
    BucketBatchSampler,
    _InfiniteConstantSampler,
)  # draw nothing


class Cursor:
    """One epoch, from its start to where delivery stands."""

    def __init__(self, epoch: int, workers: int) -> None:
        self.epoch = epoch
        self.delivered = 0
        self.finished = False
        self.base_seed: int | None = None  # of workers
        self.randomness: dict[str, Any] | None = None  # taken right before the first index is drawn
        self.replay: dict[str, Any] | None = None  # the same, in words, of the state that this goes on from
        self.samplers: list[Any] = []  # at the start of the order, or, of those with a state, behind the last index
        self.ended: dict[str, Any] | None = None  # until a batch came: `samplers` are of the epoch before, of this
        self.epochs: list[int | None] = []
        self.ends: dict[int, Any] = {}  # by worker that lives on: what its dataset says behind the last batch
        self.taken = 0  # with central_batching: of the samples that workers had left at their ends
        self.keeps_indices = False  # those behind a worker's last state, for no order is replayed
        self.fetcher: fetch.Fetcher | None = None  # of this process, where its dataset has a state
        self.last_index: Any = None  # of those that were delivered, the last one in the order
        self.waiting: list[Any] = []  # with in_order=False: indices in front of that whose batches have not come
        self.refill_end: int | None = None
        self.last_worker = workers - 1
        self.by_worker: list[dict[str, Any]] = [
            {"batches": 0, "state": None, "since": 0} for _ in range(max(workers, 1))
        ]

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: an iterator over a dataset belongs to this process."""
        return {**self.__dict__, "fetcher": None}

    def randomness_in_words(self, settings: Settings) -> dict[str, Any]:
        if self.randomness is None and self.replay is not None:
            return self.replay
        return _randomness_to_json(self.randomness or take_randomness(settings))

    def own_state(self) -> dict[str, Any] | None:
        """What the dataset of this process says of itself."""
        return None if self.fetcher is None else self.fetcher.state()

    def passed(self) -> int:
        """How many of the order's indices a loader that goes on from here takes no more from the order."""
        return self.delivered + len(self.waiting)

    def advance(self, index: Any, samplers: list[Any] | None = None, is_furthest: bool | None = None) -> None:
        """The batch of `index` has had its turn.

        Args:
            samplers: what those with a state said of themselves behind `index`.
            is_furthest: none behind it in the order came before, and `waiting` is the caller's to set; None: batches
                come in the order, those that are waited for first.
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
        """As :meth:`advance`. `more`: what `worker` said beside the batch."""
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
    """Explicit generators that the order may be drawn from, each once, in a fixed order."""
    sampler, batch_sampler = order.sampler, order.batch_sampler
    found = [order.generator, getattr(sampler, "generator", None), getattr(batch_sampler, "generator", None)]
    found.append(getattr(getattr(batch_sampler, "sampler", None), "generator", None))
    unique: list[torch.Generator] = []
    for generator in found:
        if isinstance(generator, torch.Generator) and all(generator is not u for u in unique):
            unique.append(generator)
    return unique


def samplers_of(order: Order) -> list[Any]:
    """Sampler, batch sampler and what that wraps, each once."""
    found: list[Any] = []
    for sampler in (order.sampler, order.batch_sampler, getattr(order.batch_sampler, "sampler", None)):
        if sampler is not None and all(sampler is not f for f in found):
            found.append(sampler)
    return found


def draws_globally(order: Order) -> bool:
    """Whether the order may come from the process's own generators."""
    sampler = order.sampler if order.batch_sampler is None else order.batch_sampler
    if type(sampler) is BatchSampler:
        sampler = sampler.sampler
    if type(sampler) in _KNOWN_SAMPLERS:
        return sampler.generator is None
    return type(sampler) not in _FIXED_SAMPLERS


def take_randomness(settings: Settings) -> dict[str, Any]:
    """Of all that the order may be drawn from, but for what is seeded anew in every epoch."""
    explicit = [] if settings.seeds_order else generators_of(settings.order)
    taken: dict[str, Any] = {"generators": [g.get_state() for g in explicit]}
    if draws_globally(settings.order):
        taken |= {"torch": torch.get_rng_state(), "python": random.getstate(), "numpy": np.random.get_state()}
    return taken


def are_there(taken: Mapping[str, Any]) -> bool:
    """Whether the process's generators stand where they were taken."""
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
    """What stateful samplers say of themselves, and the epoch that samplers were set to."""
    samplers = samplers_of(order)
    return [fetch.state_of(sampler) for sampler in samplers], [_epoch_of(sampler) for sampler in samplers]


def _epoch_of(sampler: Any) -> int | None:
    """The epoch to which a sampler was set; None if its order does not depend on one."""
    epoch = getattr(sampler, "epoch", None)
    return epoch if isinstance(epoch, int) and callable(getattr(sampler, "set_epoch", None)) else None


def are_stateful(order: Order) -> bool:
    """Whether a sampler can say where it stands."""
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
    """A batch that was never a list as one."""
    return index.tolist() if isinstance(index, torch.Tensor) else index


def fingerprint(index: Any) -> int | None:
    return None if index is None else zlib.crc32(repr(plain(index)).encode())


def to_json(cursor: Cursor, settings: Settings, own: dict[str, Any] | None) -> dict[str, Any]:
    """The state after the last delivered batch. `own`: of the dataset, where there are no workers."""
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
    """The state where no epoch is under way: as `epoch` would begin now.

    Args:
        cursor: of the epoch that has ended, if any.
        own: of the dataset, where there are no workers.
        base_seed: of the workers that live on; None: they draw one when the epoch begins.
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
        # The next epoch is the one that the loader would go on to by itself.
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
    state = {"version": VERSION, "kind": kind, "epoch": epoch, "base_seed": base_seed, "num_workers": workers}
    if settings.iterable:
        state |= library_of(settings.dataset)
        if is_of_datasets(settings.dataset) and hasattr(settings.dataset, "epoch"):
            state["dataset_epoch"] = int(settings.dataset.epoch)
    return state


@contextlib.contextmanager
def _with_base_seed(order: Order, known: int | None) -> Iterator[int]:
    """The generators as they are behind iter(), which draws a base seed unless one is known; afterwards as before."""
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
    """Puts samplers behind the last index, where they may have met their end already: a short last batch asks again."""
    load_samplers(settings.order, samplers)
    for _ in settings.index_sampler:  # it has: this is the next epoch's
        load_samplers(settings.order, samplers)
        return


def drain(settings: Settings, pending: Mapping[str, Any]) -> None:
    """Has samplers with a state meet the end of the epoch that it is of, so that the next one begins as ever."""
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
    """`state` as a dictionary of ours, or ConfigError."""
    if not isinstance(state, Mapping) or not state.keys() >= _REQUIRED or not _is_plain(state):
        raise ConfigError("load_state_dict: this is not a state of feedline.DataLoader")
    kind = "iterable" if settings.iterable else "map"
    if state["kind"] != kind:
        raise ConfigError(
            f"load_state_dict: the state is of a dataset of {state['kind']} style, this one is of {kind} style"
        )
    _check_samplers(state, settings.order)
    workers = state.get("workers", ())
    within = state["delivered"] or any(w["state"] is not None and not w.get("ended") for w in workers)
    if kind == "iterable" and within and state["num_workers"] != settings.num_workers and "counted" not in state:
        raise ConfigError(
            f"load_state_dict: an iterable dataset has its position in each worker; the state has "
            f"{state['num_workers']} worker(s) and this loader {settings.num_workers}. Resume with the same "
            "num_workers within an epoch"
        )
    if settings.iterable:
        check_version(state, settings.dataset)
    return copy.deepcopy(dict(state))


def _is_plain(state: Mapping[str, Any]) -> bool:
    """Whether the entries that every state has are of the right types."""
    version, delivered = state.get("version"), state["delivered"]
    return (
        isinstance(version, int)
        and version in _READABLE
        and type(delivered) is int
        and delivered >= 0
        and all(isinstance(state[name], list) for name in ("samplers", "sampler_epochs"))
    )


def _check_samplers(state: Mapping[str, Any], order: Order) -> None:
    """ConfigError if the state was taken with samplers of another kind, whose order differs."""
    samplers, states, epochs = samplers_of(order), state["samplers"], state["sampler_epochs"]
    names = ", ".join(type(sampler).__name__ for sampler in samplers) or "none"
    if not len(samplers) == len(states) == len(epochs):
        raise ConfigError(
            f"load_state_dict: the state was taken from a loader with {len(states)} sampler(s), this loader has "
            f"{len(samplers)} ({names}). Resume with the same kind of sampler"
        )
    for sampler, taken, epoch in zip(samplers, states, epochs, strict=True):
        for had, has, methods in (
            (epoch is not None, _epoch_of(sampler) is not None, "set_epoch()"),
            (taken is not None, fetch.is_stateful(sampler), "state_dict() and load_state_dict()"),
        ):
            if had != has:
                raise ConfigError(
                    f"load_state_dict: the state was taken with a sampler that has {'' if had else 'no '}{methods}, "
                    f"this loader's {type(sampler).__name__} has {'them' if has else 'none'}. Resume with the same "
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
