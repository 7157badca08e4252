# SPDX-License-Identifier: Apache-2.0
"""``settings=``: chooses arguments that the user omitted, by rules or from a tuned file, and records the reasons."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import torch
from torch.utils.data import IterableDataset, TensorDataset

from ...errors import ConfigError
from ...loader.tuned_settings import load_settings
from ...machine import gpu_facts, limits
from ...machine.worker_count import worker_count
from . import stream_shares
from .devices import device_of

CHOSEN = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory")
FIRST_AHEAD = 2  # batches prefetched per worker until one was measured: torch's default
_DEEPEST = 100  # nested subsets
_MOST_AHEAD = 4  # per worker: if the loop still waits, it needs more workers, not a longer queue


class AutomaticWorkers(int):
    """The number chosen by ``num_workers="auto"``.

    Frameworks create loaders from another loader's attributes. A loader that gets an `AutomaticWorkers` number from
    another loader determines its own number.
    """


class AutomaticPrefetch(int):
    """The initial ``prefetch_factor`` of a loader that prefetches by bytes. A loader that gets this value from another
    loader also prefetches by bytes.
    """


class NotGiven(int):
    """torch's default for an argument, which can be distinguished from the same value passed by the user."""

    def __new__(cls, default: int) -> NotGiven:
        one = super().__new__(cls, default)
        one.default = default
        return one

    default: int

    def __repr__(self) -> str:
        return repr(self.default)


NO_WORKERS, ONE = NotGiven(0), NotGiven(1)
OFF = cast(bool, NotGiven(False))


class Choice(NamedTuple):
    """The value chosen for an argument, and the reason."""

    name: str
    value: Any
    why: str

    def __str__(self) -> str:
        return f"{self.name}={self.value!r}: {self.why}"


def choose(settings: Any, stock: Mapping[str, Any], device: Any, in_threads: bool) -> list[Choice]:
    """Chooses values for those arguments of torch's loader in `stock` that are :class:`NotGiven` or None.

    Raises:
        ConfigError: `settings` is neither "auto" nor the path of a settings file.
        OSError: the file cannot be read.
    """
    if settings is None:
        return []
    if isinstance(settings, str) and settings == "auto":
        return _by_rules(stock, device, in_threads)
    if not isinstance(settings, (str, os.PathLike)):
        raise ConfigError(f'settings must be "auto" or the path of a tuned file, not {settings!r}')
    return _of_file(settings, stock)


def automatic_workers(dataset: Any, worker_init_fn: Any = None) -> tuple[int, str]:
    """Returns the number of workers that can run concurrently with the training loop, and the reason. The number is 0
    if reading only slices memory, or if no worker can be started.

    Returns 1 for an IterableDataset that each worker might read completely, because repeated samples would cost more
    than waiting.
    """
    inner = dataset
    for _ in range(_DEEPEST):  # a mock has every attribute, at any depth
        if not (hasattr(inner, "dataset") and hasattr(inner, "indices")):
            break
        inner = inner.dataset
    if isinstance(inner, (TensorDataset, torch.Tensor, list, tuple, range)):
        return 0, f"a {type(inner).__name__} is in memory, so reading only slices it"
    if multiprocessing.current_process().daemon:
        return 0, "this process is a daemon, which cannot have children"
    usable, cores = limits.usable_cpus(), limits.usable_cores()
    count, why = worker_count(usable, cores, limits.sharing_ranks())
    if cores is None or cores >= usable:
        why = f"{_cpu_words()}, one of them for the training loop"
    if count == 1 or not isinstance(dataset, IterableDataset):
        return count, why
    shared = stream_shares.how_shared(dataset, worker_init_fn)
    if not shared:
        return 1, "could not determine whether the IterableDataset shards its samples among workers"
    return count, f"{why}; {shared}"


def batches_ahead(budget_bytes: int, batch_bytes: int, workers: int) -> Choice:
    """Chooses the number of batches to prefetch per worker: as many as the budget holds, from 1 to 4."""
    room = budget_bytes // max(1, batch_bytes * workers)
    count = max(1, min(_MOST_AHEAD, room))
    bound = "" if count == room else ", and more workers would not help" if count < room else ", and the minimum is one"
    for_each = "one worker" if workers == 1 else f"each of {workers} workers"
    return Choice(
        "prefetch_factor",
        count,
        f"the memory budget of {budget_bytes:,} bytes holds {room} batches of {batch_bytes:,} bytes for "
        f"{for_each}{bound}",
    )


# -- rules


def _by_rules(stock: Mapping[str, Any], device: Any, in_threads: bool) -> list[Choice]:
    found = []
    workers = stock["num_workers"]
    if isinstance(workers, (NotGiven, AutomaticWorkers)) or workers == "auto":
        count, why = _workers(stock)
        found.append(Choice("num_workers", AutomaticWorkers(count), why))
        workers = count
    if workers and (stock["prefetch_factor"] is None or isinstance(stock["prefetch_factor"], AutomaticPrefetch)):
        why = "until the first batch is measured; then the number that fits in the memory budget"
        if in_threads:
            why = "the size of batches from threads is not measured"
        found.append(Choice("prefetch_factor", AutomaticPrefetch(FIRST_AHEAD), why))
    if isinstance(stock["persistent_workers"], NotGiven):
        why = "workers start once, not in every epoch" if workers else "there are no workers"
        found.append(Choice("persistent_workers", bool(workers), why))
    if isinstance(stock["pin_memory"], NotGiven):
        found.append(Choice("pin_memory", *_pinning(device)))
    return _unchanged(stock) + found


def _unchanged(stock: Mapping[str, Any]) -> list[Choice]:
    """Explains the arguments that rules leave unchanged, because other values would change the training."""
    if stock["batch_sampler"] is not None or not isinstance(stock["batch_size"], int):
        return []
    size = stock["batch_size"]
    origin = "torch's default" if isinstance(size, NotGiven) else "yours"
    try:
        samples = len(stock["dataset"] if stock["sampler"] is None else stock["sampler"])
    except (TypeError, NotImplementedError, AttributeError):
        samples = None
    if stock["drop_last"]:
        why = "the last, smaller batch of each epoch is dropped"
    elif samples is None:
        why = "the last batch may be smaller; set drop_last=True if shapes must be equal, as for DDP or torch.compile"
    elif size > 0 and samples % size:
        why = (
            f"the last batch has {samples % size} of {size} samples; set drop_last=True if shapes must be equal, as "
            "for DDP or torch.compile"
        )
    else:
        why = "all batches are full"
    kept = (
        f"{origin}, because it changes the training; "
        "`feedline tune --ladder` measures larger ones up to the GPU's memory"
    )
    return [Choice("batch_size", size, kept), Choice("drop_last", stock["drop_last"], why)]


def _workers(stock: Mapping[str, Any]) -> tuple[int, str]:
    count, why = automatic_workers(stock["dataset"], stock["worker_init_fn"])
    batches = _batches(stock)
    if batches is not None and count > max(1, batches):
        return max(1, batches), f"an epoch has {batches} batch{'es' if batches != 1 else ''}"
    return count, why


def _batches(stock: Mapping[str, Any]) -> int | None:
    """Returns the number of batches per epoch; None if unknown."""
    try:
        if stock["batch_sampler"] is not None:
            return len(stock["batch_sampler"])
        samples = len(stock["dataset"] if stock["sampler"] is None else stock["sampler"])
    except (TypeError, NotImplementedError, AttributeError):
        return None
    size = stock["batch_size"]
    return None if not isinstance(size, int) or size < 1 else -(-samples // size)


def _cpu_words() -> str:
    usable, ranks, quota = limits.usable_cpus(), limits.sharing_ranks(), limits.cpu_quota()
    words = "1 usable CPU" if usable == 1 else f"{usable} usable CPUs"
    if quota is not None and quota <= usable:
        words += f" (a quota of {quota:g})"
    return words if ranks == 1 else f"{words}, shared by {ranks} ranks"


def _pinning(device: Any) -> tuple[bool, str]:
    wanted = device_of(device)
    if wanted is not None and wanted.type != "cuda":
        return False, f"batches stay on {device}"
    gpus = gpu_facts.gpu_facts()[0]["gpus"]
    if gpus == 0:
        return False, "this machine has no NVIDIA GPU"
    if not torch.cuda.is_available():
        return False, "torch cannot use a GPU here"
    return True, "copies from page-locked memory to the GPU are asynchronous"


# -- a tuned file


def _of_file(path: str | os.PathLike[str], stock: Mapping[str, Any]) -> list[Choice]:
    """Chooses the arguments in the file that the user omitted and that are compatible with the arguments that were
    passed.
    """
    try:
        tuned = load_settings(path, for_="feedline.DataLoader", source=stock["dataset"])
    except OSError as error:
        raise ConfigError(
            f'settings must be "auto" or the path of a file that `feedline tune --settings` wrote; '
            f"{os.fspath(path)!r} cannot be read: {error.strerror or error}"
        ) from error
    workers = tuned["num_workers"] if isinstance(stock["num_workers"], NotGiven) else stock["num_workers"]
    found = []
    for name, value in tuned.items():
        is_given = not isinstance(stock[name], NotGiven) and stock[name] is not None
        of_workers = name in ("prefetch_factor", "persistent_workers")
        if is_given or value is None or (of_workers and not workers):
            continue
        if name == "batch_size" and stock["batch_sampler"] is not None:
            continue
        found.append(Choice(name, value, f"measured by feedline tune: {os.fspath(path)}"))
    return found
