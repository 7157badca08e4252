# SPDX-License-Identifier: Apache-2.0
"""`feedline.DataLoader`, a replacement for `torch.utils.data.DataLoader` that requires changing one import."""

from __future__ import annotations

import copy
import functools
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from multiprocessing.context import BaseContext
from typing import Any, Literal, SupportsIndex, TypeVar

import torch
from torch.utils.data import default_collate, default_convert, get_worker_info
from torch.utils.data.dataloader import DataLoader as _TorchDataLoader

from ..data import arguments, literals
from ..errors import ConfigError, WorkerDiedError
from ..loader import gpu
from ..loader.loader import BadSample, publish
from ..loader.statistics import Statistics
from . import foreign_patches, preflight
from .fetching import fetch, own_generators
from .iteration.position import Position
from .iteration.process_count import why_fixed
from .iteration.single_iterator import SingleIterator
from .iteration.worker_iterator import WorkerIterator
from .lowering.plan import missed, plan_lowering
from .lowering.unknown_datasets import next_step
from .native.plans import ArrayPlan, ImagePlan, PrefixPlan
from .options.auto_options import CHOSEN, NO_WORKERS, OFF, ONE, Choice
from .options.settings import Settings, check_worker_count, resolve
from .state.loader_progress import LoaderProgress
from .state.state_edits import skipped
from .workers import page_lock
from .workers.pool import WorkerPool
from .workers.worker import put_attribute

__all__ = [
    "DataLoader",
    "StatefulDataLoader",
    "WorkerDiedError",
    "WorkerPool",
    "default_collate",
    "default_convert",
    "get_worker_info",
]

_T_co = TypeVar("_T_co", covariant=True)


class DataLoader(_TorchDataLoader[_T_co]):
    """A drop-in replacement for torch's DataLoader, with the same arguments, attributes, results and errors.

    docs/drop-in.md lists the improvements. The following arguments are not in torch's DataLoader, or accept more values
    than in torch's:

    Args:
        num_workers: as in torch, or ``"auto"``: this rank's share of the CPUs that the process may use, or 0 for data
            in memory. With native threads, ``"auto"`` adapts the number of threads to the training loop while it runs.
            Worker processes are adapted in the same way if `seed` is given, because the number of workers then does not
            affect results.
        seed: makes the random numbers of every sample (``random``, NumPy, torch) and the shuffled order depend only on
            (seed, epoch, sample), for any number of workers. Transforms with their own generators are seeded by the
            methods that Albumentations, MONAI and imgaug document, or by ``set_random_seed(seed)``; :meth:`explain` and
            a warning name the generators that cannot be seeded. If `seed` is None, generators are seeded per worker, as
            in torch.
        device: the device to which the tensors of a batch are moved.
        on_error: what to do with a bad sample: ``"raise"``, ``"skip"`` (fill the batch from the end of the order) or
            ``"replace"`` (use the next good sample of the dataset). With ``"skip"`` and ``"replace"``, workers that die
            are also replaced.
        error_budget: the number of bad samples that may be skipped or replaced in an epoch before an error is raised; 0
            for no limit.
        memory_budget: the maximum size of batches that wait in worker memory, in bytes or as text such as ``"2 GiB"``;
            by default a quarter of the memory available at the start, divided among this machine's ranks. The budget
            always allows one batch per worker, and does not count batches that you hold.
        lower: whether parts of the loader run in the engine. ``"auto"``: supported parts run in ``num_workers`` native
            threads (at least one), with the samples and order of torch's loader. ``"never"``: everything runs in
            Python. ``"require"``: a part that would run in Python raises ConfigError, and Feedline's client reads
            webdataset's remote shards. See :meth:`explain`.
        settings: how to choose arguments that you omit. ``"auto"``: by rules; the choices are logged and shown by
            :meth:`explain`. ``num_workers`` is chosen as with ``num_workers="auto"``, but is at most the number of
            batches per epoch. ``prefetch_factor`` is from 1 to 4, such that batches of the largest size so far fit in
            ``memory_budget``. ``persistent_workers`` is True if there are workers, which then see changes to the
            dataset between epochs only through ``set_epoch``. ``pin_memory`` is True if torch can use an NVIDIA GPU. A
            path: the settings that ``feedline tune --settings`` saved there (see :func:`feedline.load_settings`). None:
            torch's defaults.
        worker_method: ``"process"`` (also ``"multiprocessing"``) or ``"thread"``.
        prefetch_epochs: whether persistent workers begin the next epoch's batches before the current epoch has ended.
        pool: a :class:`feedline.WorkerPool` whose processes run the workers of this loader and of other loaders.
        central_batching: whether this process combines the samples that are left in each worker at the end of an
            IterableDataset into batches. Then, for any number of workers, every batch except the last is full, and
            ``drop_last`` drops only the last batch. A dataset that is not sharded among workers is read by a single
            worker, so that no sample is repeated.
        uneven: how samples that do not divide evenly are handled if `sampler` is torch's ``DistributedSampler``.
            ``"pad"`` keeps that sampler, which repeats samples so that all ranks have the same number; ``"exact"``
            replaces it with :class:`feedline.DistributedSampler`, which yields each sample once.
        snapshot_every_n_steps: the number of batches after which a worker's stateful dataset is saved again within an
            epoch. 0: states are only saved at the start and end of an epoch. None: like 0, but nothing is saved before
            the first call to :meth:`state_dict` or :meth:`load_state_dict`. ``"auto"``: like 1, but streams are not
            saved before the first call to these methods.
        stall_timeout: seconds without progress after which a StalledError is raised, with a warning after a fifth of
            this time; 0 disables the check.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = ONE,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int | Literal["auto"] = NO_WORKERS,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = OFF,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: str | BaseContext | None = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = OFF,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed: int | None = None,
        device: torch.device | str | int | None = None,
        on_error: literals.OnError = "raise",
        error_budget: int = 0,
        memory_budget: int | str | None = None,
        lower: literals.Lower = "auto",
        settings: str | os.PathLike[str] | None = None,
        worker_method: literals.WorkerMethod = "process",
        prefetch_epochs: bool = False,
        pool: WorkerPool | None = None,
        central_batching: bool = False,
        uneven: Literal["pad", "exact"] = "pad",
        snapshot_every_n_steps: int | Literal["auto"] | None = "auto",
        stall_timeout: float = 300.0,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        stock, own, choices = resolve(arguments)
        self.__dict__.update(own)  # under the arguments' names: frameworks create loaders from these attributes
        self._iterator: Any = None
        self._early: Any = None  # an iterator created for a state before the first epoch, which then uses it
        self._progress = LoaderProgress()
        self._choices = choices
        super().__init__(**stock)
        self._member = None if pool is None else pool.join(self)
        preflight.warn(self, lambda: Settings.of(self).budget_bytes())
        if lower == "require":
            kept = missed(plan_lowering(Settings.of(self), self._progress))
            if kept:
                reasons = "; ".join(f"{s.name} ({s.what}): {s.why}" for s in kept)
                raise ConfigError(f'lower="require": this loader cannot run natively: {reasons}')

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "num_workers":
            check_worker_count(value)
        super().__setattr__(name, value)
        progress = self.__dict__.get("_progress")
        if progress is not None and progress.settings is not None and not name.startswith("_"):
            progress.settings = Settings.of(self)  # for running iterators

    # -- iteration

    def __iter__(self) -> Any:
        seen = foreign_patches.take_speechbrain_position(self)
        if seen:
            self.skip(seen)
        early, self._early = self._early, None
        if early is not None and early is self._progress.iterator() and self._progress.pending is None:
            return early
        progress, settings = self._progress, Settings.of(self)
        progress.wait_s = None
        before = progress.cursor
        if foreign_patches.replaces_iter():
            progress.begin(settings)
            iterator = super().__iter__()  # calls _get_iterator()
        else:
            iterator = self._start_epoch(settings)
        if isinstance(iterator, Position):
            self._show(iterator)
        elif progress.cursor is before:  # the foreign iterator contains none of ours
            progress.pass_unseen(settings)
        if seen:
            iterator._num_yielded = seen  # SpeechBrain saves it
        return iterator

    def _show(self, iterator: Position) -> None:
        """Publishes the loader to `feedline top` until the iterator pauses."""
        publish(self)  # starts a thread, so after workers were forked
        self._progress.running.add(iterator)
        if iterator._when_paused is None:
            reference = weakref.ref(self)
            iterator._when_paused = functools.partial(_paused, reference)
            weakref.finalize(iterator, _withdraw_idle, reference).atexit = False

    def _start_epoch(self, settings: Settings) -> Any:
        progress = self._progress
        if self._iterator is None or not progress.may_use(getattr(self._iterator, "_next_epoch", None), settings):
            progress.begin(settings)
        if not (settings.persistent_workers and settings.num_workers > 0):
            progress.fresh_workers = True
            return self._get_iterator()
        if self._iterator is not None and self._needs_another(self._iterator):
            self._iterator = None
        if self._iterator is None:
            progress.fresh_workers = True
            self._iterator = self._get_iterator()
        else:
            progress.fresh_workers = False
            self._iterator._reset(self)
        return self._iterator

    def _needs_another(self, iterator: Any) -> bool:
        """Returns whether new workers are needed because the persistent workers cannot run the next epoch."""
        if not isinstance(iterator, Position):  # created by a subclass
            return False
        if getattr(iterator, "_broken", False) or iterator._is_inherited() or iterator._has_lost_workers():
            return True
        if self._progress.counted is not None and self._progress.counted.needs_fresh_workers():
            return True
        pending = self._progress.pending
        if pending is None:
            return False
        # A dataset's state, or a position in a stream, applies only to a dataset that has not been read; and workers'
        # random numbers start with their seed.
        seed = pending.get("base_seed")
        same_seed = seed is None or seed == getattr(iterator, "_base_seed", seed)
        is_told = pending["kind"] == "iterable" or bool(pending.get("workers"))
        return is_told or not same_seed or fetch.is_stateful(self.dataset)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the attributes for pickle and copy: all except iterators, which belong to this object only."""
        fresh = {"_iterator": None, "_early": None, "_progress": copy.copy(self._progress)}
        return {**self.__dict__, **fresh, "_member": None}

    def _get_iterator(self) -> Any:
        """torch's name. The name is torch's. If a subclass returns an iterator of torch's classes, torch's workers and
        transport are used.
        """
        settings = Settings.of(self)
        if settings.device is not None:
            gpu.check_usable("DataLoader", torch, settings.device)
        plan = plan_lowering(settings, self._progress)
        is_native = isinstance(plan, (ImagePlan, ArrayPlan))
        patches = foreign_patches.replaced(is_native)
        if patches:
            foreign_patches.warn_of(patches)
            return super()._get_iterator()
        if isinstance(plan, (ImagePlan, ArrayPlan)):
            return plan.iterate(self)
        wrap = plan.wrap if isinstance(plan, PrefixPlan) else None
        if settings.num_workers == 0:
            return SingleIterator(self, wrap)
        self.check_worker_number_rationality()
        return WorkerIterator(self, wrap)

    # -- epochs and state

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch for the next ``iter()`` in the samplers and the dataset, including the dataset's copies in
        workers.

        Raises:
            ConfigError: `epoch` is not an integer of at least 0.
        """
        epoch = arguments.integer("set_epoch", "epoch", epoch, 0, 2**63 - 1)
        self._early = None
        self._progress.set_epoch(epoch, Settings.of(self))

    def state_dict(self) -> dict[str, Any]:
        """Returns the position after the delivered batches as JSON-compatible, picklable data.

        A state may be saved before the first epoch, within an epoch, or after an epoch's last batch; in the last case,
        it begins the next epoch.
        """
        progress, settings = self._progress, Settings.of(self)
        if settings.iterable and not settings.num_workers and progress.is_fresh():
            self._early = iter(self)  # creates the dataset's iterator, which alone knows its state
        return progress.state_dict(settings)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Makes the next ``iter()`` resume from a state. An empty state changes nothing.

        Raises:
            ConfigError: `state_dict` is not a state of this class, or does not fit this loader.
        """
        if not isinstance(state_dict, Mapping):
            raise ConfigError(f"load_state_dict: this is not a state of feedline.DataLoader: {state_dict!r:.80}")
        if state_dict:
            self._early = None
        self._progress.load_state_dict(state_dict, Settings.of(self))

    def skip(self, batches: SupportsIndex) -> None:
        """Makes the next ``iter()`` skip a number of batches from the current position, as if they had been delivered.

        Samples of a map-style dataset are not read, and torch's own samplers skip all of these batches in one step.
        With an IterableDataset, each worker reads and drops its share of the batches.

        Raises:
            ConfigError: `batches` is not a non-negative integer, or the sampler has its own state.
        """
        self.load_state_dict(skipped(self.state_dict(), batches, Settings.of(self)))

    def broadcast(self, name: str, value: Any) -> None:
        """Sets an attribute of the dataset in this process and in persistent workers.

        Workers set the attribute after the batches that they have already been sent. To affect the whole next epoch,
        call this method between epochs.

        Args:
            name: an attribute of the dataset or of one of its parts, such as ``"transform.size"``.
            value: the new value, which must be picklable if workers are processes.

        Raises:
            AttributeError: the dataset has no part with this name, or the attribute cannot be set.
        """
        put_attribute(self.dataset, name, value)
        self._progress.given[name] = value
        iterator = self._progress.iterator()
        if isinstance(iterator, WorkerIterator) and not iterator.give(name, value):
            self._iterator = None  # the native parts in its workers were built from the old value

    # -- information

    @property
    def errors(self) -> list[BadSample]:
        """Skipped and replaced bad samples, in the order in which they were found."""
        return self._progress.errors

    def explain(self) -> str:
        """Returns a description of each stage: where the stage runs and, if it does not run natively, the reason."""
        settings = Settings.of(self)
        plan = plan_lowering(settings, self._progress)
        lines = [f"DataLoader over {type(self.dataset).__qualname__}, lower={self.lower!r}"]
        wide = max(len(stage.what) for stage in plan.stages)
        lines += [f"  {s.name:<10} {s.what:<{wide}}  {s.runs}: {s.why}" for s in plan.stages]
        instead = next_step(self.dataset, plan)
        if instead:
            lines.append(f"  instead    {instead}")
        has_ring = settings.num_workers > 0 and not settings.in_threads and not isinstance(plan, (ImagePlan, ArrayPlan))
        if has_ring:
            budget = settings.budget_bytes()
            lines.append(
                f"  transport  through a memfd ring without a copy; at most {budget:,} bytes of batches are queued"
            )
        if has_ring and settings.adapts:
            fixed = why_fixed(settings)
            processes = f"{settings.num_workers} processes throughout: {fixed}"
            if not fixed:
                processes = f"up to {settings.num_workers} processes, depending on how long the loop waits"
            lines.append(f"  workers    {processes}")
        if has_ring and settings.pool is not None:
            lines.append(f"  workers    run in the processes of a pool, shared with other loaders: {settings.pool!r}")
        patches = foreign_patches.replaced(isinstance(plan, (ImagePlan, ArrayPlan)))
        if patches:
            lines.append(
                f"  iterators  torch's iterators are used, because another program replaced {', '.join(patches)}"
            )
        if type(self)._get_iterator is not DataLoader._get_iterator:
            lines.append(
                f"  iterators  {type(self).__qualname__} creates its own iterators; if these are torch's, this plan "
                "does not apply"
            )
        if self.pin_memory:
            lines.append(f"  pin        {page_lock.explain(self._progress.page_lock_refusal, has_ring)}")
        if self.seed is not None:
            lines += own_generators.lines_of(settings.own_generators(), self.seed)
        return "\n".join(lines + self._chosen_lines(isinstance(plan, (ImagePlan, ArrayPlan))))

    def _chosen_lines(self, is_native: bool) -> list[str]:
        """Returns a line for each argument that ``settings`` may choose, with its value and the reason."""
        if self.settings is None:
            return []
        chosen = {choice.name: choice for choice in self._choices}
        if self._progress.prefetch is not None:
            chosen["prefetch_factor"] = self._progress.prefetch
        elif is_native and "prefetch_factor" in chosen:
            why = "the engine limits prefetching by size"
            chosen["prefetch_factor"] = chosen["prefetch_factor"]._replace(why=why)
        names = (*(name for name in ("batch_size", "drop_last") if name in chosen), *CHOSEN)
        shown = [str(chosen.get(name) or Choice(name, getattr(self, name), "as given")) for name in names]
        return [f"  settings   {text}" for text in shown]

    def stats(self) -> Statistics:
        """Returns counters of the latest epoch.

        ``batches`` is the number of delivered batches, and ``wait_s`` the time that ``next()`` waited for workers or
        native threads (None if the loader has neither). ``bad_samples`` counts all epochs. ``bytes_held`` is the amount
        of the workers' batch memory that your tensors and undelivered batches use; it is 0 after the workers have
        ended.

        ``controller`` describes how ``num_workers="auto"`` adapts, or is None if the number is fixed. With native
        threads, ``controller`` has the same entries as in :meth:`Loader.stats`. With worker processes, ``controller``
        has the number of active ``processes``, their ``limit`` and the ``changes``.
        """
        progress = self._progress
        iterator, cursor = progress.iterator(), progress.cursor
        group = getattr(iterator, "_worker_group", None)
        pipeline = getattr(iterator, "_pipeline", None)
        processes = None if progress.processes is None else progress.processes.facts()
        return Statistics(
            {
                "epoch": cursor.epoch if cursor else progress.epoch,
                "batches": cursor.delivered if cursor else 0,
                "bad_samples": len(self.errors),
                "wait_s": progress.wait_s,
                "bytes_held": group.bytes_held() if group is not None else 0,
                "controller": pipeline.engine.stats()["controller"] if pipeline is not None else processes,
            }
        )

    def progress(self, **options: Any) -> Any:
        """Returns a progress bar for one ``iter()``, which iterates over the batches and shows the share of time spent
        waiting.

        Unlike :meth:`Loader.progress`, the bar shows no sample rate, because ``collate_fn`` determines the form of a
        batch.

        Raises:
            ConfigError: tqdm is not installed.
        """
        from ..loader import progress

        pending = self._progress.pending
        initial = int(pending["delivered"]) if pending is not None else 0
        return progress.bar(self, samples=None, initial=initial, is_first=None, options=options)

    def __repr__(self) -> str:
        try:
            batches = f"{len(self):,} batches"
        except (TypeError, NotImplementedError):  # a stream of unknown length
            batches = "batches"
        of = type(self.dataset).__name__
        size = f", batch_size={self.batch_size}" if self.batch_size is not None else ""
        return f"<feedline.DataLoader of {batches}: {of}{size}, num_workers={self.num_workers}>"

    def _repr_html_(self) -> str:
        from ..loader import html_table

        return html_table.section(
            repr(self).strip("<>"), self.stats()._tables(), html_table.folded("what runs where", self.explain())
        )

    def metrics(self, port: int = 0, *, name: str | None = None) -> str:
        """Serves :meth:`stats` as metrics on this machine only, as long as the loader exists. Returns the URL.

        See :func:`feedline.serving.metrics.serve`.
        """
        from ..serving import metrics

        return metrics.serve(self, port, name)

    def _counters(self) -> dict[str, Any]:
        stats = self.stats()
        return {**stats, "held_bytes": stats["bytes_held"]}

    def _published(self) -> dict[str, Any]:
        iterator = self._progress.iterator()
        counters: dict[str, Any] = {**self._counters(), "threads": int(self.num_workers)}
        if counters["wait_s"] is None:
            del counters["wait_s"]
        pipeline = getattr(iterator, "_pipeline", None)
        if pipeline is not None:  # thread counters are the engine's; delivery is counted here
            of_engine = pipeline.engine.stats()
            counters = {**of_engine, **counters, "threads": of_engine["threads"]}
        folder = getattr(self.dataset, "root", getattr(self.dataset, "source", ""))  # the attribute's name in
        # torchvision and in Feedline
        shown = f" {folder}" if isinstance(folder, (str, os.PathLike)) else ""
        try:
            batches_per_epoch = len(self)
        except (TypeError, NotImplementedError):  # a stream of unknown length
            batches_per_epoch = None
        return {
            "kind": "DataLoader",
            "source": f"{type(self.dataset).__qualname__}{shown}".strip(),
            "batch_size": self.batch_size,
            "epoch": counters["epoch"],
            "batches_per_epoch": batches_per_epoch,
            "counters": counters,
        }


StatefulDataLoader = DataLoader  # torchdata's name, for code that was written for torchdata


def _paused(reference: weakref.ref[Any], iterator: Any) -> None:
    """Called when the loop might not request another batch of this epoch."""
    loader = reference()
    if loader is not None:
        loader._progress.running.discard(iterator)
    _withdraw_idle(reference)


def _withdraw_idle(reference: weakref.ref[Any]) -> None:
    """Stops publishing a loader that has no running iterator, since publishing needs a thread, which an idle loader
    should not have.
    """
    loader = reference()
    publishing = sys.modules.get("feedline.serving.publishing")
    if loader is not None and publishing is not None and not list(loader._progress.running):
        publishing.withdraw(loader)
