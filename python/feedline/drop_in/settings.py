# SPDX-License-Identifier: Apache-2.0
"""What a loader is told: its arguments, checked and in one form, and as one frozen value for those that work for it."""

from __future__ import annotations

import inspect
import multiprocessing
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.utils.data import TensorDataset
from torch.utils.data import dataloader as torch_dataloader

from ..data.arguments import byte_count
from ..errors import ConfigError
from ..machine import limits
from . import fetch

_BUDGET_SHARE = 4  # of the memory that is left: one part for batches that wait
_STOCK = frozenset(inspect.signature(torch_dataloader.DataLoader.__init__).parameters)
_CHOICES = {
    "on_error": ("raise", "skip", "replace"),
    "lower": ("auto", "never", "require"),
    "worker_method": ("process", "multiprocessing", "thread"),
}
_INTEGERS = {"seed": None, "error_budget": 0, "snapshot_every_n_steps": 1}  # the least, where there is one


class AutomaticWorkers(int):
    """The number that ``num_workers="auto"`` came to.

    Frameworks make a loader anew from its attributes: one that gets this number finds its own, as the first one did.
    """


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
    collate_fn: Any
    worker_init_fn: Any
    num_workers: int
    adapts: bool  # num_workers="auto": native threads come and go
    in_threads: bool  # workers are threads, also where a context of the user's calls threads processes
    persistent_workers: bool
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
            collate_fn=loader.collate_fn,
            worker_init_fn=loader.worker_init_fn,
            num_workers=int(loader.num_workers),
            adapts=isinstance(loader.num_workers, AutomaticWorkers),
            in_threads=loader.worker_method == "thread" or threads,
            persistent_workers=loader.persistent_workers,
            pin_memory=loader.pin_memory,
            seed=loader.seed,
            seeds_order=loader.seed is not None and isinstance(loader.generator, SeededGenerator),
            device=None if loader.device is None else torch.device(loader.device),
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

    def feeds_gpu(self) -> bool:
        """Whether its batches go to a GPU: the thread that launches work there needs a CPU."""
        if self.device is not None and self.device.type == "cuda":
            return True
        return torch.cuda.is_initialized() or (self.pin_memory and torch.cuda.is_available())


def resolve(stock: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the arguments of torch's loader that this torch knows, ours as attributes), checked and in one form.

    Raises:
        ConfigError: one of ours, or ``num_workers``, is not what it may be.
    """
    stock, own = dict(stock), dict(own)
    _check(own)
    if own["memory_budget"] is not None:
        own["memory_budget"] = byte_count("loader", "memory_budget", own["memory_budget"])
    own["worker_method"] = "thread" if own["worker_method"] == "thread" else "process"
    workers = stock["num_workers"]
    if workers == "auto" or isinstance(workers, AutomaticWorkers):
        stock["num_workers"] = workers = AutomaticWorkers(_automatic_workers(stock["dataset"]))
        if workers == 0:
            stock |= {
                "prefetch_factor": None,
                "persistent_workers": False,
                "multiprocessing_context": None,
                "timeout": 0,
            }
    elif isinstance(workers, str):
        raise ConfigError(f'num_workers must be a number or "auto", not {workers!r}')
    if own["seed"] is not None and stock["generator"] is None:
        stock["generator"] = SeededGenerator()
    return {name: value for name, value in stock.items() if name in _STOCK}, own


def _check(own: Mapping[str, Any]) -> None:
    for name, choices in _CHOICES.items():
        if own[name] not in choices:
            raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {own[name]!r}")
    for name, low in _INTEGERS.items():
        value = own[name]
        if value is None or (name == "snapshot_every_n_steps" and value == "auto"):
            continue
        if isinstance(value, bool) or not isinstance(value, int) or (low is not None and value < low):
            raise ConfigError(f"{name} must be an integer{'' if low is None else f' from {low} on'}, not {value!r}")
    if not own["stall_timeout"] >= 0:
        raise ConfigError(f"stall_timeout must be seconds from 0 on, not {own['stall_timeout']!r}")


def _automatic_workers(dataset: Any) -> int:
    """As many as may run beside the training loop; none where reading is only slicing, or where no worker can start."""
    inner = dataset
    while hasattr(inner, "dataset") and hasattr(inner, "indices"):
        inner = inner.dataset
    if isinstance(inner, (TensorDataset, torch.Tensor, list, tuple, range)):
        return 0
    if multiprocessing.current_process().daemon:  # daemons may not have children
        return 0
    return max(1, limits.share_of_cpus() - 1)
