# SPDX-License-Identifier: Apache-2.0
"""Where a loader stands, as JSON: how the epoch's order came about, and how many batches of it were delivered.

Resuming replays the order (indices alone, no sample is read) with the random generators as they were, so it needs no
particular number of workers. Only iterable datasets have their position in the workers: there the state has one entry
per worker, with the dataset's own state where it has one, or a number of batches to pass over.
"""

from __future__ import annotations

import base64
import copy
import random
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ..errors import ConfigError
from .settings import Order, Settings

VERSION = 1


class Cursor:
    """One epoch, from its start to where delivery stands."""

    def __init__(self, epoch: int, workers: int) -> None:
        self.epoch = epoch
        self.delivered = 0
        self.finished = False
        self.base_seed: int | None = None
        self.randomness: dict[str, Any] | None = None  # taken right before the first index is drawn
        self.generators: list[torch.Tensor] = []  # before iter() drew anything
        self.samplers: list[Any] = []
        self.epochs: list[int | None] = []
        self.last_index: Any = None
        self.refill_end: int | None = None
        self.last_worker = workers - 1
        self.by_worker: list[dict[str, Any]] = [
            {"batches": 0, "state": None, "since": 0} for _ in range(max(workers, 1))
        ]

    def deliver(self, worker: int, index: Any, more: Mapping[str, Any]) -> None:
        self.delivered += 1
        self.last_index = index
        self.last_worker = worker
        entry = self.by_worker[worker]
        entry["batches"] += 1
        if "state" in more:
            entry["state"], entry["since"] = more["state"], 0
        else:
            entry["since"] += 1


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


def take_randomness(order: Order) -> dict[str, Any]:
    return {
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "generators": [g.get_state() for g in generators_of(order)],
    }


def put_randomness(order: Order, taken: Mapping[str, Any]) -> None:
    torch.set_rng_state(taken["torch"])
    random.setstate(taken["python"])
    np.random.set_state(taken["numpy"])
    for generator, state in zip(generators_of(order), taken["generators"], strict=False):
        generator.set_state(state)


def put_generators(order: Order, words: list[str] | None) -> None:
    for generator, one in zip(generators_of(order), words or [], strict=False):
        generator.set_state(tensor_of(one))


def take_samplers(order: Order) -> tuple[list[Any], list[int | None]]:
    """What stateful samplers say of themselves at the start of the order, and the epoch they were set to."""
    states, epochs = [], []
    for sampler in samplers_of(order):
        own = callable(getattr(sampler, "state_dict", None)) and callable(getattr(sampler, "load_state_dict", None))
        states.append(copy.deepcopy(sampler.state_dict()) if own else None)
        epoch = getattr(sampler, "epoch", None)
        epochs.append(epoch if isinstance(epoch, int) and callable(getattr(sampler, "set_epoch", None)) else None)
    return states, epochs


def put_samplers(order: Order, states: list[Any], epochs: list[int | None]) -> None:
    for sampler, state, epoch in zip(samplers_of(order), states, epochs, strict=False):
        if epoch is not None:
            sampler.set_epoch(epoch)
        if state is not None:
            sampler.load_state_dict(state)


def fingerprint(index: Any) -> int | None:
    if isinstance(index, torch.Tensor):  # of a batch that was never a list
        index = index.tolist()
    return None if index is None else zlib.crc32(repr(index).encode())


def to_json(cursor: Cursor, settings: Settings, single_state: dict[str, Any] | None) -> dict[str, Any]:
    """The state after the last delivered batch; after an epoch's last batch, the start of the next epoch."""
    iterable, order = settings.iterable, settings.order
    state: dict[str, Any] = {"version": VERSION, "kind": "iterable" if iterable else "map"}
    if cursor.finished:
        states, epochs = take_samplers(order)
        # The next epoch is the one that the loader would go on to by itself.
        epochs = [None if epoch is None else epoch + 1 for epoch in epochs]
        state |= {"epoch": cursor.epoch + 1, "delivered": 0, "samplers": states, "sampler_epochs": epochs}
        # Workers that live on draw no seed at iter(), so their order begins right here.
        key = "order_generators" if settings.persistent_workers else "generators"
        state[key] = [_words(g.get_state()) for g in generators_of(order)]
        if single_state is not None:
            state["dataset"] = single_state.get("dataset")
        return state
    state |= {"epoch": cursor.epoch, "delivered": cursor.delivered, "base_seed": cursor.base_seed}
    state |= {"samplers": cursor.samplers, "sampler_epochs": cursor.epochs, "refill_end": cursor.refill_end}
    if cursor.randomness is not None:
        state["randomness"] = _randomness_to_json(cursor.randomness)
    else:
        generators = cursor.generators or [g.get_state() for g in generators_of(order)]
        state["generators"] = [_words(g) for g in generators]
    state["last_index"] = fingerprint(cursor.last_index) if cursor.delivered else None
    if iterable or single_state is not None or any(w["state"] is not None for w in cursor.by_worker):
        workers = copy.deepcopy(cursor.by_worker)
        if single_state is not None:
            workers[0] |= {"state": single_state, "since": 0}
        state |= {"workers": workers, "last_worker": cursor.last_worker, "num_workers": settings.num_workers}
    return state


def check(state: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """`state` as a dictionary of ours, or ConfigError."""
    if not isinstance(state, Mapping) or state.get("version") != VERSION or "delivered" not in state:
        raise ConfigError("load_state_dict: this is not a state of feedline.DataLoader")
    kind = "iterable" if settings.iterable else "map"
    if state["kind"] != kind:
        raise ConfigError(
            f"load_state_dict: the state is of a dataset of {state['kind']} style, this one is of {kind} style"
        )
    if kind == "iterable" and state["delivered"] and state["num_workers"] != settings.num_workers:
        raise ConfigError(
            f"load_state_dict: an iterable dataset has its position in each worker; the state has "
            f"{state['num_workers']} worker(s) and this loader {settings.num_workers}. Resume with the same "
            "num_workers within an epoch"
        )
    return dict(state)


def _words(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def tensor_of(words: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(words)), dtype=torch.uint8)


def _randomness_to_json(taken: Mapping[str, Any]) -> dict[str, Any]:
    version, internal, gauss = taken["python"]
    name, keys, position, has_gauss, cached = taken["numpy"]
    return {
        "torch": _words(taken["torch"]),
        "python": [version, base64.b64encode(np.array(internal, dtype="<u4").tobytes()).decode(), gauss],
        "numpy": [name, base64.b64encode(keys.astype("<u4").tobytes()).decode(), position, has_gauss, cached],
        "generators": [_words(state) for state in taken["generators"]],
    }


def randomness_of(state: Mapping[str, Any]) -> dict[str, Any]:
    version, internal, gauss = state["python"]
    name, keys, position, has_gauss, cached = state["numpy"]
    words = np.frombuffer(base64.b64decode(internal), dtype="<u4")
    return {
        "torch": tensor_of(state["torch"]),
        "python": (version, tuple(int(w) for w in words), gauss),
        "numpy": (
            name,
            np.frombuffer(base64.b64decode(keys), dtype="<u4").astype(np.uint32),
            position,
            has_gauss,
            cached,
        ),
        "generators": [tensor_of(g) for g in state["generators"]],
    }
