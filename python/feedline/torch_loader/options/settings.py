# SPDX-License-Identifier: Apache-2.0
"""Validates a loader's arguments, and takes immutable snapshots of them for its iterators."""

from __future__ import annotations

import inspect
import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
from torch.utils.data import dataloader as torch_dataloader

from ...data.arguments import byte_count, worker_count
from ...errors import ConfigError
from ...machine import limits
from ...samplers.distributed import exact
from ..fetching import fetch
from ..fetching.own_generators import NONE, OwnGenerators, own_generators
from ..workers.pool import WorkerPool
from . import auto_options
from .auto_options import AutomaticPrefetch, AutomaticWorkers, Choice, NotGiven
from .devices import device_of

_log = logging.getLogger("feedline")
_BUDGET_SHARE = 4  # one part of the available memory for waiting batches
_STOCK = frozenset(inspect.signature(torch_dataloader.DataLoader.__init__).parameters)
_CHOICES = {
    "on_error": ("raise", "skip", "replace"),
    "lower": ("auto", "never", "require"),
    "uneven": ("pad", "exact"),
    "worker_method": ("process", "multiprocessing", "thread"),
}
_MOST_SECONDS = 10**9  # 30 years; the engine counts milliseconds
_SWITCHES = ("central_batching",)
_INTEGERS = {"seed": None, "error_budget": 0, "snapshot_every_n_steps": 0}  # minimum, if any


class SeededGenerator(torch.Generator):
    """A generator that a loader with a seed creates for its order, and reseeds in every epoch.

    A loader that is created from this loader's attributes also seeds the generator in every epoch.
    """


class Order(NamedTuple):
    """The objects that determine an epoch's order."""

    sampler: Any
    batch_sampler: Any
    generator: torch.Generator | None


@dataclass(frozen=True, kw_only=True)
class OwnOptions:
    """The arguments that torch's DataLoader does not have; see `feedline.DataLoader`."""

    seed: int | None
    device: torch.device | str | int | None
    on_error: str
    error_budget: int
    memory_budget: int | None
    lower: str
    settings: str | os.PathLike[str] | None
    worker_method: str
    prefetch_epochs: bool
    pool: WorkerPool | None
    central_batching: bool
    uneven: str
    snapshot_every_n_steps: int | str | None
    stall_timeout: float


_OWN = tuple(own_field.name for own_field in fields(OwnOptions))


@dataclass(frozen=True, kw_only=True)
class Settings(OwnOptions):
    """A snapshot of a loader's arguments, taken when an epoch begins and when one of the loader's attributes is set.

    Attributes:
        index_sampler: the sampler in `order` that is iterated; the name is torch's.
        auto_collation: whether the loader collates batches from single samples.
        adapts: whether `num_workers="auto"` changes the number of native threads during the epoch.
        prefetches_by_bytes: whether `settings="auto"` chooses the number of prefetched batches by their size.
        in_threads: whether workers are threads, including those of a multiprocessing context that uses threads as
            processes.
        seeds_order: whether the order's generator is seeded from `seed` in each epoch.
    """

    dataset: Any
    order: Order
    index_sampler: Any
    iterable: bool
    auto_collation: bool
    batch_size: int | None
    collate_fn: Any
    worker_init_fn: Any
    num_workers: int
    adapts: bool
    prefetches_by_bytes: bool
    in_threads: bool
    persistent_workers: bool
    pin_memory: bool
    seeds_order: bool
    device: torch.device | None

    @classmethod
    def of(cls, loader: Any) -> Settings:
        process = getattr(loader.multiprocessing_context, "Process", None)
        threads = isinstance(process, type) and issubclass(process, threading.Thread)
        own = {name: getattr(loader, name) for name in _OWN}
        own["device"] = device_of(loader.device)
        return cls(
            dataset=loader.dataset,
            order=Order(loader.sampler, loader.batch_sampler, loader.generator),
            index_sampler=loader._index_sampler,
            iterable=loader._dataset_kind == torch_dataloader._DatasetKind.Iterable,
            auto_collation=loader._auto_collation,
            batch_size=loader.batch_size,
            collate_fn=loader.collate_fn,
            worker_init_fn=loader.worker_init_fn,
            num_workers=int(loader.num_workers),
            adapts=isinstance(loader.num_workers, AutomaticWorkers),
            prefetches_by_bytes=isinstance(loader.prefetch_factor, AutomaticPrefetch),
            in_threads=loader.worker_method == "thread" or threads,
            persistent_workers=loader.persistent_workers,
            pin_memory=loader.pin_memory,
            seeds_order=loader.seed is not None and isinstance(loader.generator, SeededGenerator),
            **own,
        )

    def budget_bytes(self) -> int:
        """Returns the maximum size of batches that wait for the loop, in bytes."""
        return limits.share_of_memory_left() // _BUDGET_SHARE if self.memory_budget is None else self.memory_budget

    def seed_order(self, epoch: int) -> None:
        if self.seeds_order:
            self.order.generator.manual_seed(fetch.seed_of(self.seed, epoch, "order"))  # type: ignore[union-attr, arg-type]

    @property
    def seeds_transforms(self) -> bool:
        """Whether `seed` also seeds the random generators of transforms."""
        return not (self.in_threads and self.num_workers > 1)

    def own_generators(self) -> OwnGenerators:
        """Returns the random generators that `seed` can seed. With several worker threads, `seed` can seed no
        generator, because the threads share the generators.
        """
        if self.seed is None:
            return NONE
        found = own_generators(self.dataset, self.collate_fn)
        if self.seeds_transforms:
            return found
        return OwnGenerators((), (), found.reached + found.unreached)

    def feeds_gpu(self) -> bool:
        """Returns whether batches go to a GPU, in which case the thread that launches GPU work needs a CPU."""
        if self.device is not None and self.device.type == "cuda":
            return True
        return torch.cuda.is_initialized() or (self.pin_memory and torch.cuda.is_available())


class Resolved(NamedTuple):
    """A loader's arguments after validation.

    Attributes:
        stock: torch's arguments, without those that the installed torch does not have.
        own: the other arguments, which become attributes.
        choices: the arguments that `settings` chose.
    """

    stock: dict[str, Any]
    own: dict[str, Any]
    choices: list[Choice]


def resolve(arguments: Mapping[str, Any]) -> Resolved:
    """Validates the arguments of `DataLoader`, and chooses the arguments that `settings` determines by rules or from a
    file.

    Raises:
        ConfigError: one of Feedline's arguments, or ``num_workers``, is invalid.
        OSError: the file given as ``settings`` cannot be read.
    """
    own = {name: arguments[name] for name in _OWN}
    stock = {name: value for name, value in arguments.items() if name not in own}
    _check(own)
    if own["memory_budget"] is not None:
        own["memory_budget"] = byte_count("loader", "memory_budget", own["memory_budget"])
    own["worker_method"] = "thread" if own["worker_method"] == "thread" else "process"
    chosen = auto_options.choose(own["settings"], stock, own["device"], own["worker_method"] == "thread")
    for choice in chosen:
        _log.info("DataLoader over %s: %s", type(stock["dataset"]).__qualname__, choice)
    stock |= {choice.name: choice.value for choice in chosen}
    if own["pool"] is not None:
        _check_pool(stock, own)
    stock = {name: value.default if isinstance(value, NotGiven) else value for name, value in stock.items()}
    _resolve_workers(stock, is_chosen=any(choice.name == "num_workers" for choice in chosen))
    if own["uneven"] == "exact":
        stock["sampler"] = exact(stock["sampler"])
    if own["seed"] is not None and stock["generator"] is None:
        stock["generator"] = SeededGenerator()
    unknown = {name: stock.pop(name) for name in list(stock) if name not in _STOCK}  # unknown to the installed torch
    return Resolved(stock, own | unknown, chosen)


def _check_pool(stock: dict[str, Any], own: Mapping[str, Any]) -> None:
    """Checks the arguments for a pool. A pool's workers are persistent, so `persistent_workers` defaults to True."""
    if not isinstance(own["pool"], WorkerPool):
        raise ConfigError(f"pool must be a feedline.WorkerPool, not {own['pool']!r}")
    if own["worker_method"] == "thread":
        raise ConfigError('pool= requires worker processes; worker_method="thread" has none')
    if isinstance(stock["num_workers"], NotGiven):
        raise ConfigError("pool= requires num_workers > 0")
    if stock["num_workers"] != 0:
        if isinstance(stock["persistent_workers"], NotGiven):
            stock["persistent_workers"] = True
        elif not stock["persistent_workers"]:
            raise ConfigError("pool= requires persistent_workers=True: a pool's workers are persistent")


def _resolve_workers(stock: dict[str, Any], is_chosen: bool) -> None:
    workers = stock["num_workers"]
    if workers == "auto" or (isinstance(workers, AutomaticWorkers) and not is_chosen):
        count, why = auto_options.automatic_workers(stock["dataset"], stock["worker_init_fn"])
        _log.info("DataLoader over %s: num_workers=%d: %s", type(stock["dataset"]).__qualname__, count, why)
        stock["num_workers"] = workers = AutomaticWorkers(count)
    check_worker_count(workers)
    if workers == 0 and isinstance(workers, AutomaticWorkers):
        stock |= {"prefetch_factor": None, "persistent_workers": False, "multiprocessing_context": None, "timeout": 0}


def check_worker_count(workers: Any) -> None:
    """Checks ``num_workers`` like `Dataset.loader`. torch's loader only rejects negative integers, and accepts
    booleans.
    """
    if not isinstance(workers, bool) and not (isinstance(workers, int) and workers < 0):
        worker_count("loader", workers)


def _check(own: Mapping[str, Any]) -> None:
    for name, words in _CHOICES.items():
        if not isinstance(own[name], str) or own[name] not in words:
            raise ConfigError(f"{name} must be one of {', '.join(words)}, not {own[name]!r}")
    for name in _SWITCHES:
        if not isinstance(own[name], bool):
            raise ConfigError(f"{name} must be True or False, not {own[name]!r}")
    for name, low in _INTEGERS.items():
        value = own[name]
        if value is None or (name == "snapshot_every_n_steps" and isinstance(value, str) and value == "auto"):
            continue
        if isinstance(value, bool) or not isinstance(value, int) or (low is not None and value < low):
            raise ConfigError(f"{name} must be an integer{'' if low is None else f' of at least {low}'}, not {value!r}")
    device_of(own["device"])
    seconds = own["stall_timeout"]
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _MOST_SECONDS:
        raise ConfigError(
            f"stall_timeout must be a number of seconds from 0 (no timeout) to {_MOST_SECONDS}, not {seconds!r}"
        )
