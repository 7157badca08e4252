# SPDX-License-Identifier: Apache-2.0
"""`feedline.DataLoader`: `torch.utils.data.DataLoader` with one changed import."""

from __future__ import annotations

import inspect
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from multiprocessing.context import BaseContext
from typing import Any, TypeVar

import torch
from torch.utils.data import TensorDataset, default_collate, default_convert, get_worker_info
from torch.utils.data.dataloader import DataLoader as _TorchDataLoader

from ..data.arguments import byte_count
from ..errors import ConfigError, WorkerDiedError
from ..loader.loader import BadSample, publish
from ..loader.statistics import Statistics
from ..machine import limits
from . import fetch, page_lock, state
from .iterators import WorkerIterator
from .lowering import NATIVE, ArrayPlan, ImagePlan, PrefixPlan, Reason, plan_lowering
from .sampler_epochs import SamplerEpochs
from .single import SingleIterator

__all__ = ["DataLoader", "WorkerDiedError", "default_collate", "default_convert", "get_worker_info"]

_T_co = TypeVar("_T_co", covariant=True)
_BUDGET_SHARE = 4  # of the memory that is left: one part for batches that wait
_STALL_S = 300.0
_TORCH_ARGUMENTS = frozenset(inspect.signature(_TorchDataLoader.__init__).parameters)


class _SeededGenerator(torch.Generator):
    """One that a loader with a seed made for its order, and seeds anew in every epoch."""


class DataLoader(_TorchDataLoader[_T_co]):
    """torch's DataLoader: same arguments, attributes, results and errors; see docs/drop-in.md for what is better.

    Beyond torch's arguments:

    Args:
        num_workers: also ``"auto"``: by the CPUs that this process may use, its share where several ranks train on
            this machine; 0 for data that is in memory already. Where native threads do the work, as many of them as
            the training loop needs, found while it runs.
        seed: makes every sample's random numbers (``random``, NumPy, torch) and the shuffled order a function of
            (seed, epoch, sample), whatever the number of workers. None: torch's way, by worker.
        device: where the tensors of a batch go before you get it.
        on_error: what a bad sample does: ``"raise"``, ``"skip"`` (the batch is refilled from the end of the order) or
            ``"replace"`` (by the next good sample of the data set). With the last two, workers that die are replaced.
        error_budget: bad samples that an epoch may skip or replace before it raises; 0 is any number.
        memory_budget: bytes of batches that may wait in worker memory, or text such as ``"2 GiB"``; None: a quarter of
            what is left at the start, shared by the ranks of this machine. At least one batch per worker always fits;
            what you keep does not count.
        lower: ``"auto"``: what the engine knows runs in native threads, as many as ``num_workers`` (at least one), with
            the samples and the order of torch's loader; ``"never"``: nothing does; ``"require"``: what stays in Python
            is a ConfigError. See :meth:`explain`.
        worker_method: ``"process"`` (also ``"multiprocessing"``) or ``"thread"``.
        prefetch_epochs: with persistent workers, begin the next epoch's batches while this one ends.
        snapshot_every_n_steps: after every how many batches a worker's stateful dataset is asked for its state; None:
            never; ``"auto"``: 1, from the first :meth:`state_dict` or :meth:`load_state_dict` on.
        stall_timeout: seconds without any progress before a StalledError, with a warning at a fifth of it; 0: never.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int | str = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: str | BaseContext | None = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed: int | None = None,
        device: torch.device | str | int | None = None,
        on_error: str = "raise",
        error_budget: int = 0,
        memory_budget: int | str | None = None,
        lower: str = "auto",
        worker_method: str = "process",
        prefetch_epochs: bool = False,
        snapshot_every_n_steps: int | str | None = "auto",
        stall_timeout: float = _STALL_S,
    ) -> None:
        self._check_choices(on_error, lower, worker_method)
        self._check_numbers(seed, error_budget, snapshot_every_n_steps, stall_timeout)
        if memory_budget is not None:
            memory_budget = byte_count("loader", "memory_budget", memory_budget)
        self._adapts = num_workers == "auto"
        if num_workers == "auto":
            num_workers = _automatic_workers(dataset)
            if num_workers == 0:
                prefetch_factor, persistent_workers, multiprocessing_context, timeout = None, False, None, 0
        elif isinstance(num_workers, str):
            raise ConfigError(f'num_workers must be a number or "auto", not {num_workers!r}')
        self.seed, self.device, self.on_error = seed, device, on_error
        self.error_budget, self.memory_budget, self.lower = error_budget, memory_budget, lower
        self.worker_method = "thread" if worker_method == "thread" else "process"
        self.prefetch_epochs, self.snapshot_every_n_steps = prefetch_epochs, snapshot_every_n_steps
        self.stall_timeout = stall_timeout
        self._errors: list[BadSample] = []
        self._wants_state = False
        self._iterator: Any = None
        # Frameworks make a loader anew from its attributes, and hand in the generator that another made for itself.
        self._owns_generator = seed is not None and (generator is None or isinstance(generator, _SeededGenerator))
        if self._owns_generator and generator is None:
            generator = _SeededGenerator()
        self._epoch = 0
        self._cursor: state.Cursor | None = None
        self._pending: dict[str, Any] | None = None
        self._latest: weakref.ref[Any] | None = None
        self._wait_s: float | None = None  # in next(), of the epoch that was begun last; None: nobody measures it
        self._warned_unsharded = False
        self._page_lock_refusal: str | None = None  # why batches are pinned by torch, where there is a GPU
        self._fresh_workers = True
        self._sampler_epochs = SamplerEpochs()
        self._running: weakref.WeakSet[Any] = weakref.WeakSet()  # iterators in the middle of an epoch
        self._generators_before: list[torch.Tensor] = []
        self._prefix: PrefixPlan | None = None
        self._native_rows = self._native_misses = 0
        arguments: dict[str, Any] = {
            "dataset": dataset,
            "batch_size": batch_size,
            "shuffle": shuffle,
            "sampler": sampler,
            "batch_sampler": batch_sampler,
            "num_workers": num_workers,
            "collate_fn": collate_fn,
            "pin_memory": pin_memory,
            "drop_last": drop_last,
            "timeout": timeout,
            "worker_init_fn": worker_init_fn,
            "multiprocessing_context": multiprocessing_context,
            "generator": generator,
            "prefetch_factor": prefetch_factor,
            "persistent_workers": persistent_workers,
            "pin_memory_device": pin_memory_device,
            "in_order": in_order,
        }
        super().__init__(**{name: value for name, value in arguments.items() if name in _TORCH_ARGUMENTS})
        self.in_order = in_order  # torch before 2.6 does not know it
        self._target_device = None if device is None else torch.device(device)
        if lower == "require":
            plan = plan_lowering(self)
            if isinstance(plan, (Reason, PrefixPlan)):
                missed = [stage for stage in plan.stages if not stage.runs.startswith(NATIVE) and stage.name != "order"]
                reasons = "; ".join(f"{s.name} ({s.what}): {s.why}" for s in missed)
                raise ConfigError(f'lower="require": this loader cannot run natively: {reasons}')

    @staticmethod
    def _check_choices(on_error: str, lower: str, worker_method: str) -> None:
        for name, value, choices in (
            ("on_error", on_error, ("raise", "skip", "replace")),
            ("lower", lower, ("auto", "never", "require")),
            ("worker_method", worker_method, ("process", "multiprocessing", "thread")),
        ):
            if value not in choices:
                raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {value!r}")

    @staticmethod
    def _check_numbers(seed: int | None, error_budget: int, snapshot: int | str | None, stall: float) -> None:
        for name, value, low in (
            ("seed", seed, None),
            ("error_budget", error_budget, 0),
            ("snapshot_every_n_steps", snapshot, 1),
        ):
            if value is None or (name == "snapshot_every_n_steps" and value == "auto"):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or (low is not None and value < low):
                raise ConfigError(f"{name} must be an integer{'' if low is None else f' from {low} on'}, not {value!r}")
        if not stall >= 0:
            raise ConfigError(f"stall_timeout must be seconds from 0 on, not {stall!r}")

    # -- iteration

    def __iter__(self) -> Any:
        self._wait_s = None
        iterator = self._start_epoch()
        publish(self)  # after workers have been forked: it has a thread
        self._running.add(iterator)
        if not iterator._is_watched:
            iterator._is_watched = True
            weakref.finalize(iterator, _withdraw_idle, weakref.ref(self)).atexit = False
        return iterator

    def _runs_no_more(self, iterator: Any) -> None:
        self._running.discard(iterator)
        _withdraw_idle(weakref.ref(self))

    def _start_epoch(self) -> Any:
        if self._iterator is None or not self._may_use(getattr(self._iterator, "_ahead", None)):
            self._begin_epoch()
        if not (self.persistent_workers and self.num_workers > 0):
            self._fresh_workers = True
            return self._get_iterator()
        if self._iterator is not None and self._needs_another(self._iterator):
            self._iterator = None
        if self._iterator is None:
            self._fresh_workers = True
            self._iterator = self._get_iterator()
        else:
            self._fresh_workers = False
            self._iterator._reset(self)
        return self._iterator

    def _needs_another(self, iterator: Any) -> bool:
        """Whether workers that live on cannot give the next epoch."""
        if getattr(iterator, "_broken", False) or iterator._is_inherited():
            return True
        # A position in a stream counts from where a data set begins that nobody has read yet.
        return self._pending is not None and self._pending["kind"] == "iterable"

    def _without_iterator(self) -> DataLoader[_T_co]:
        """A copy that shares everything with this loader but its iterator."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, _iterator=None, _running=weakref.WeakSet())
        return copy

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: everything but iterators, which belong to this loader."""
        return {**self.__dict__, "_iterator": None, "_latest": None, "_prefix": None, "_running": None}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes, _running=weakref.WeakSet())

    def _get_iterator(self) -> Any:
        plan = plan_lowering(self)
        if isinstance(plan, (ImagePlan, ArrayPlan)):
            return plan.iterate(self)
        self._prefix = plan if isinstance(plan, PrefixPlan) else None
        if self.num_workers == 0:
            return SingleIterator(self)
        self.check_worker_number_rationality()
        return WorkerIterator(self)

    def _readable(self, dataset: Any) -> Any:
        """`dataset` as workers read it: natively as far as that goes."""
        return dataset if self._prefix is None else self._prefix.wrap(dataset)

    def _begin_epoch(self) -> None:
        """Before anything is drawn: generators and samplers go where a loaded state or the epoch wants them."""
        pending = self._pending
        if pending is not None:
            self._epoch = pending["epoch"]
            state.put_generators(self, pending.get("generators"))
        else:
            self._sampler_epochs.advance(state.samplers_of(self))
        self._seed_order(self._epoch)
        self._generators_before = [g.get_state() for g in state.generators_of(self)]

    def _seed_order(self, epoch: int) -> None:
        if self._owns_generator:
            self.generator.manual_seed(fetch.seed_of(self.seed, epoch, "order"))  # type: ignore[union-attr]

    def _open_cursor(self) -> tuple[state.Cursor, dict[str, Any] | None]:
        """For an iterator that begins: where it stands, and the state that it goes on from, if any."""
        resume, self._pending = self._pending, None
        cursor = state.Cursor(self._epoch, self.num_workers)
        cursor.samplers, cursor.epochs = state.take_samplers(self)
        cursor.generators = self._generators_before
        if resume is not None:
            cursor.delivered = resume["delivered"]
        self._cursor = cursor
        self._epoch += 1
        return cursor, resume

    def _may_use(self, ahead: Any) -> bool:
        """Whether the epoch that was begun ahead is still the one that is wanted."""
        if ahead is None or self._pending is not None or self._epoch != ahead.epoch:
            return False
        return ahead.sampler_epochs == [getattr(sampler, "epoch", None) for sampler in state.samplers_of(self)]

    def _adopt_cursor(self, cursor: state.Cursor) -> None:
        self._sampler_epochs.note(state.samplers_of(self))
        self._cursor = cursor
        self._epoch += 1

    def _resumed_base_seed(self) -> int | None:
        return None if self._pending is None else self._pending.get("base_seed")

    def _dataset_epoch(self, next_epoch: bool = False) -> int | None:
        """The epoch to tell persistent workers' data sets. Fresh workers have a fresh copy and need none."""
        if (self._fresh_workers and not next_epoch) or not callable(getattr(self.dataset, "set_epoch", None)):
            return None
        for name in ("epoch", "_epoch"):
            value = None if next_epoch else getattr(self.dataset, name, None)
            if value is not None:
                try:
                    return int(value)
                except (TypeError, ValueError):
                    continue
        return self._epoch if next_epoch else self._epoch - 1

    def _budget_bytes(self) -> int:
        return limits.share_of_memory_left() // _BUDGET_SHARE if self.memory_budget is None else self.memory_budget

    # -- epochs and state

    def set_epoch(self, epoch: int) -> None:
        """The epoch of the next ``iter()``, for the samplers, the data set and, through it, the workers."""
        self._epoch = epoch
        for sampler in state.samplers_of(self):
            if callable(getattr(sampler, "set_epoch", None)):
                sampler.set_epoch(epoch)
        self._sampler_epochs.forget()
        if callable(getattr(self.dataset, "set_epoch", None)):
            self.dataset.set_epoch(epoch)  # type: ignore[union-attr]

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands, after the batches that were delivered. Fit for JSON and pickle.

        Before the first epoch, within one, or after its last batch, when the state begins the next epoch.
        """
        iterator = self._latest() if self._latest is not None else None
        self._wants_state = True
        if iterator is not None:
            iterator.want_states(self._snapshot_steps())
        if self._pending is not None:
            return dict(self._pending)
        cursor = self._cursor or state.Cursor(self._epoch, self.num_workers)
        if iterator is not None and cursor is iterator._cursor:
            cursor = iterator.state_cursor()
        return state.to_json(cursor, self, None if iterator is None else iterator._own_state())

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on, at the next ``iter()``, where the state was taken. An empty state changes nothing.

        Raises:
            ConfigError: not such a state, or one that does not fit this loader.
        """
        self._wants_state = True
        if state_dict:
            self._pending = pending = state.check(state_dict, self)
            # Now and not at iter(), so that a set_epoch of yours between the two is the last word.
            state.put_samplers(self, pending["samplers"], pending["sampler_epochs"])
            self._sampler_epochs.note(state.samplers_of(self))

    def _snapshot_steps(self) -> int:
        """After every how many batches workers are asked for a state; 0: not now."""
        if self.snapshot_every_n_steps == "auto":
            return int(self._wants_state)
        return int(self.snapshot_every_n_steps or 0)

    # -- what it does

    @property
    def errors(self) -> list[BadSample]:
        """Bad samples that were skipped or replaced, in the order in which they were met."""
        return self._errors

    def _works_in_threads(self) -> bool:
        """Also where a context of the user's calls threads processes."""
        kind = getattr(self.multiprocessing_context, "Process", None)
        return self.worker_method == "thread" or (isinstance(kind, type) and issubclass(kind, threading.Thread))

    def explain(self) -> str:
        """Stage by stage, what runs where, and why not natively."""
        plan = plan_lowering(self)
        lines = [f"DataLoader over {type(self.dataset).__qualname__}, lower={self.lower!r}"]
        wide = max(len(stage.what) for stage in plan.stages)
        lines += [f"  {s.name:<10} {s.what:<{wide}}  {s.runs}: {s.why}" for s in plan.stages]
        native = isinstance(plan, (ImagePlan, ArrayPlan))
        if self.num_workers and not self._works_in_threads() and not native:
            lines.append(
                f"  hand-over  one memfd ring, at most {self._budget_bytes():,} bytes of waiting batches, no copy"
            )
        if self.pin_memory:
            has_ring = bool(self.num_workers) and not self._works_in_threads() and not native
            lines.append(f"  pin        {page_lock.explain(self, has_ring)}")
        if self.seed is not None:
            lines.append(f"  random     per sample, from seed {self.seed}, the epoch and the index")
        return "\n".join(lines)

    def stats(self) -> Statistics:
        """Of the epoch that was begun last: ``batches`` delivered, and ``wait_s``, how long ``next()`` waited for
        workers (None without any: nobody measures it). ``bad_samples`` of all epochs. ``bytes_held``: of the memory
        that workers write batches to, what tensors of yours, and batches on their way to you, occupy now; 0 once the
        workers have ended.

        ``controller``: with ``num_workers="auto"`` and native threads, as of :meth:`Loader.stats`; else None.
        """
        iterator = self._latest() if self._latest is not None else None
        cursor, crew = self._cursor, getattr(iterator, "_crew", None)
        pipeline = getattr(iterator, "_pipeline", None)
        return Statistics(
            {
                "epoch": cursor.epoch if cursor else self._epoch,
                "batches": cursor.delivered if cursor else 0,
                "bad_samples": len(self.errors),
                "wait_s": self._wait_s,
                "bytes_held": crew.bytes_held() if crew is not None else 0,
                "controller": pipeline.engine.stats()["controller"] if pipeline is not None else None,
            }
        )

    def metrics(self, port: int = 0, *, name: str | None = None) -> str:
        """Serves :meth:`stats` as metrics, to this machine alone, while the loader lives; returns the URL.

        See :func:`feedline.serving.metrics.serve`.
        """
        from ..serving import metrics

        return metrics.serve(self, port, name)

    def _counters(self) -> dict[str, Any]:
        stats = self.stats()
        return {**stats, "held_bytes": stats["bytes_held"]}

    def _published(self) -> dict[str, Any]:
        iterator = self._latest() if self._latest is not None else None
        counters: dict[str, Any] = {**self._counters(), "threads": self.num_workers}
        if counters["wait_s"] is None:
            del counters["wait_s"]
        pipeline = getattr(iterator, "_pipeline", None)
        if pipeline is not None:  # how its threads stand; what was delivered is for this loader to say
            of_engine = pipeline.engine.stats()
            counters = {**of_engine, **counters, "threads": of_engine["threads"]}
        folder = getattr(self.dataset, "root", getattr(self.dataset, "source", ""))  # torchvision's word, and ours
        shown = f" {folder}" if isinstance(folder, (str, os.PathLike)) else ""
        try:
            batches_per_epoch = len(self)
        except (TypeError, NotImplementedError):  # of a stream nobody knows
            batches_per_epoch = None
        return {
            "kind": "DataLoader",
            "source": f"{type(self.dataset).__qualname__}{shown}".strip(),
            "batch_size": self.batch_size,
            "epoch": counters["epoch"],
            "batches_per_epoch": batches_per_epoch,
            "counters": counters,
        }


def _withdraw_idle(reference: weakref.ref[Any]) -> None:
    """Ends the publishing of a loader that nobody iterates: a thread for it would be one that nothing needs."""
    loader = reference()
    publishing = sys.modules.get("feedline.serving.publishing")
    if loader is not None and publishing is not None and not list(loader._running):
        publishing.withdraw(loader)


def _automatic_workers(dataset: Any) -> int:
    """As many as may run beside the training loop; none where reading is only slicing, or where no worker can start."""
    inner = dataset
    while hasattr(inner, "dataset") and hasattr(inner, "indices"):
        inner = inner.dataset
    if isinstance(inner, (TensorDataset, torch.Tensor, list, tuple, range)):
        return 0
    import multiprocessing

    if multiprocessing.current_process().daemon:  # daemons may not have children
        return 0
    return max(1, limits.share_of_cpus() - 1)
