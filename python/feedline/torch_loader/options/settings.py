# SPDX-License-Identifier: Apache-2.0
"""What a loader is told: its arguments, checked and in one form, and as one frozen value for those that work for it."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
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
_BUDGET_SHARE = 4  # of the memory that is left: one part for batches that wait
_STOCK = frozenset(inspect.signature(torch_dataloader.DataLoader.__init__).parameters)
_CHOICES = {
    "on_error": ("raise", "skip", "replace"),
    "lower": ("auto", "never", "require"),
    "uneven": ("pad", "exact"),
    "worker_method": ("process", "multiprocessing", "thread"),
}
_MOST_SECONDS = 10**9  # 30 years; the engine counts milliseconds
_SWITCHES = ("central_batching",)
_INTEGERS = {"seed": None, "error_budget": 0, "snapshot_every_n_steps": 0}  # the least, where there is one


class SeededGenerator(torch.Generator):
    """One that a loader with a seed made for its order, and seeds anew in every epoch. It is handed on likewise."""


class Order(NamedTuple):
    """What the order of an epoch comes from."""

    sampler: Any
    batch_sampler: Any
    generator: torch.Generator | None


@dataclass(frozen=True)
class Settings:
    """A loader's arguments as they are when an epoch begins, and whenever an attribute of it is set: frameworks do."""

    dataset: Any
    order: Order
    index_sampler: Any  # torch's name for the one of `order` that is iterated
    iterable: bool
    auto_collation: bool  # batches are put together here, from single samples
    batch_size: int | None
    central_batching: bool  # of a stream: batches are full whatever the number of workers
    collate_fn: Any
    worker_init_fn: Any
    num_workers: int
    adapts: bool  # num_workers="auto": native threads come and go
    prefetches_by_bytes: bool  # settings="auto": batches ahead by what one takes
    in_threads: bool  # workers are threads, also where a context of the user's calls threads processes
    persistent_workers: bool
    pool: WorkerPool | None
    pin_memory: bool
    seed: int | None
    seeds_order: bool  # the order's generator is seeded from `seed`, epoch by epoch
    device: torch.device | None
    on_error: str
    error_budget: int
    memory_budget: int | None
    lower: str
    prefetch_epochs: bool
    snapshot_every_n_steps: int | str | None
    stall_timeout: float

    @classmethod
    def of(cls, loader: Any) -> Settings:
        process = getattr(loader.multiprocessing_context, "Process", None)
        threads = isinstance(process, type) and issubclass(process, threading.Thread)
        return cls(
            dataset=loader.dataset,
            order=Order(loader.sampler, loader.batch_sampler, loader.generator),
            index_sampler=loader._index_sampler,
            iterable=loader._dataset_kind == torch_dataloader._DatasetKind.Iterable,
            auto_collation=loader._auto_collation,
            batch_size=loader.batch_size,
            central_batching=loader.central_batching,
            collate_fn=loader.collate_fn,
            worker_init_fn=loader.worker_init_fn,
            num_workers=int(loader.num_workers),
            adapts=isinstance(loader.num_workers, AutomaticWorkers),
            prefetches_by_bytes=isinstance(loader.prefetch_factor, AutomaticPrefetch),
            in_threads=loader.worker_method == "thread" or threads,
            persistent_workers=loader.persistent_workers,
            pool=loader.pool,
            pin_memory=loader.pin_memory,
            seed=loader.seed,
            seeds_order=loader.seed is not None and isinstance(loader.generator, SeededGenerator),
            device=device_of(loader.device),
            on_error=loader.on_error,
            error_budget=loader.error_budget,
            memory_budget=loader.memory_budget,
            lower=loader.lower,
            prefetch_epochs=loader.prefetch_epochs,
            snapshot_every_n_steps=loader.snapshot_every_n_steps,
            stall_timeout=loader.stall_timeout,
        )

    def budget_bytes(self) -> int:
        """Of batches that wait for the loop."""
        return limits.share_of_memory_left() // _BUDGET_SHARE if self.memory_budget is None else self.memory_budget

    def seed_order(self, epoch: int) -> None:
        if self.seeds_order:
            self.order.generator.manual_seed(fetch.seed_of(self.seed, epoch, "order"))  # type: ignore[union-attr, arg-type]

    @property
    def seeds_transforms(self) -> bool:
        """Whether `seed` reaches the random generators of transforms."""
        return not (self.in_threads and self.num_workers > 1)

    def own_generators(self) -> OwnGenerators:
        """The random generators that `seed` reaches. Threads share them, so with threads it reaches none."""
        if self.seed is None:
            return NONE
        found = own_generators(self.dataset, self.collate_fn)
        if self.seeds_transforms:
            return found
        return OwnGenerators((), (), found.reached + found.unreached)

    def feeds_gpu(self) -> bool:
        """Whether its batches go to a GPU: the thread that launches work there needs a CPU."""
        if self.device is not None and self.device.type == "cuda":
            return True
        return torch.cuda.is_initialized() or (self.pin_memory and torch.cuda.is_available())


class Resolved(NamedTuple):
    """A loader's arguments, checked and in one form."""

    stock: dict[str, Any]  # of torch's loader, those that this torch knows
    own: dict[str, Any]  # ours, as attributes
    choices: list[Choice]  # what of them `settings` has chosen


def resolve(stock: Mapping[str, Any], own: Mapping[str, Any]) -> Resolved:
    """What to make a loader of.

    Raises:
        ConfigError: one of ours, or ``num_workers``, is not what it may be.
        OSError: the file of ``settings`` cannot be read.
    """
    stock, own = dict(stock), dict(own)
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
    return Resolved({name: value for name, value in stock.items() if name in _STOCK}, own, chosen)


def _check_pool(stock: dict[str, Any], own: Mapping[str, Any]) -> None:
    """Workers of a pool live on, so they do where nobody says that they should not."""
    if not isinstance(own["pool"], WorkerPool):
        raise ConfigError(f"pool must be a feedline.WorkerPool, not {own['pool']!r}")
    if own["worker_method"] == "thread":
        raise ConfigError('pool= is of worker processes, and worker_method="thread" has none')
    if isinstance(stock["num_workers"], NotGiven):
        raise ConfigError("pool= is of worker processes: say how many this loader has, by num_workers=")
    if stock["num_workers"] != 0:
        if isinstance(stock["persistent_workers"], NotGiven):
            stock["persistent_workers"] = True
        elif not stock["persistent_workers"]:
            raise ConfigError("the workers of a pool live on: persistent_workers=False needs processes of its own")


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
    """Checks ``num_workers`` like `Dataset.loader`. torch's loader accepts booleans and reports negative integers."""
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
            raise ConfigError(f"{name} must be an integer{'' if low is None else f' from {low} on'}, not {value!r}")
    device_of(own["device"])
    seconds = own["stall_timeout"]
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _MOST_SECONDS:
        raise ConfigError(f"stall_timeout must be seconds from 0 (never) to {_MOST_SECONDS}, not {seconds!r}")
