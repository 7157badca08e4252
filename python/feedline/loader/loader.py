# SPDX-License-Identifier: Apache-2.0
"""Loaders: iteration, state, statistics, and the log of bad samples."""

from __future__ import annotations

import atexit
import enum
import importlib
import math
import os
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from .. import _engine
from ..errors import ConfigError, Error
from ..machine.ranks import ProcessRank, Share
from ..serving import live_loaders
from . import batches, changes, statistics
from . import state as state_module
from .batches import Batch
from .sampler_order import SamplerOrder
from .tv_tensors import Wrapper
from .unopened import UnopenedColumn, listed

# A field's line in the engine's explanation.
_FIELD = re.compile(r"^field {6}(.+): (\w+ \(.*\))$", re.MULTILINE)

# Loaders with threads, closed before the interpreter exits. Created with the first loader, not at import.
_running: weakref.WeakSet[Loader] | None = None


class Output(enum.Enum):
    """The array type of batches."""

    TORCH = "torch"
    NUMPY = "numpy"
    TV_TENSORS = "tv_tensors"
    DLPACK = "dlpack"


class BadSample(NamedTuple):
    """A sample that could not be used.

    Attributes:
        dataset, shard, key, record, offset, stage: location, as in :class:`Error`; None if not applicable.
        message: one line of text, including the location.
        code: ``"data"``, ``"storage"``, ...
        epoch, batch: epoch and batch in which the sample was found; batches are counted on this rank.
        action: ``"raise"``, ``"skip"`` or ``"replace"``.
    """

    dataset: str | None
    shard: str | None
    key: str | None
    record: int | None
    offset: int | None
    stage: str | None
    message: str
    code: str
    epoch: int
    batch: int
    action: str


B = TypeVar("B", covariant=True)  # a batch


class Loader:
    """Batches of a :class:`Dataset`, prefetched by native threads. Created by :meth:`Dataset.loader`.

    Each ``iter()`` runs the next epoch (or the next ``epochs`` epochs), or resumes from a loaded state. A batch is a
    named tuple of arrays of shape (rows, ...), one per field (``image, label``). A field whose samples differ in length
    is either padded or a list. A padded field has the length of the longest sample of the batch and is followed by
    ``NAME_length`` (int64, (rows,)), the length of each row. A list has one array, ``bytes``, ``str`` or parsed JSON
    object per row, or None if the sample lacks the field. The arrays of a list share one buffer. The loader prefetches
    the first batches of the next epoch while the last batches of the current epoch are used, unless ``epochs`` allows
    no further epoch.

    The loader's threads start with the first ``iter()``, and end when :meth:`close` is called, when the ``with`` block
    ends, or when the last reference is dropped. After ``fork()``, a child process must create its own loader: a copy of
    a started loader raises ConfigError.
    """

    def __init__(
        self,
        engine: _engine.Loader,
        output: Output,
        *,
        place: ProcessRank,
        share: Share,
        make_engine: Callable[[ProcessRank], _engine.Loader],
        epochs: float | None,
        remake: Callable[[int], Loader],
        wrapper: Wrapper | None = None,
        kinds: Callable[[], dict[str, str]] = dict,
        explained: Callable[[str], str] = str,
        on_gpu: bool = False,
        batch_size: int = 0,
        unopened: tuple[UnopenedColumn, ...] = (),
        notice: Callable[[], None] | None = None,
        set_weights: Callable[[_engine.Loader, Any], None],
        sampler: SamplerOrder | None = None,
    ) -> None:
        """`remake` creates a loader like this one with a different number of threads; `wrapper` converts the fields for
        TV_TENSORS.

        `kinds`: returns each field's kind, as in :class:`FieldSpec`.
        `explained`: adds notes about the dataset's storage to the engine's explanation. `on_gpu`: whether batches are
        on a GPU.
        `place`: the rank that `engine` was created for; `make_engine` creates an engine's loader for another rank if
        `share` changes the rank before the first epoch. `batch_size`: samples per batch on each rank; 0 if batches
        differ in size. `notice`: called after each batch, for warnings about the dataset. `unopened`: columns of the
        source that batches do not contain.
        `sampler`: the order of each epoch, if the user passed one. `set_weights`: checks weights and sets them in this
        engine's loader, and in the loaders that `make_engine` and `remake` create.
        """
        # Imported before an engine thread calls Python: `threading` treats the thread that imports it as the main
        # thread.
        importlib.import_module("threading")
        if output in (Output.TORCH, Output.TV_TENSORS):
            _require_torch()
        self._engine = engine
        self._output = output
        self._wrapper = wrapper
        self._kinds = kinds
        self._epochs = epochs
        self._place = place
        self._share = share
        self._make_engine = make_engine
        self._announced = False
        self._batch_size = batch_size
        self._loaded: Mapping[str, Any] | None = None  # a loaded state from which no epoch has started yet
        self._length_given: int | None = None  # last result of len()
        self._resumed_at = 0  # samples of the next epoch that were delivered before a loaded state
        self._remake = remake
        self._explained = explained
        self._on_gpu = on_gpu
        self._notice = notice
        self._unopened = unopened
        self._sampler = sampler
        self._set_weights = set_weights
        self._batch_type = batches.tuple_type(batches.attribute_names(engine.field_names), unopened)
        self._held: tuple[Any, ...] = ()  # tensors whose memory the engine reads
        self._revisions: list[str] = []  # commits of datasets on the Hugging Face Hub
        self._closed = False
        self._changes = changes.Log()
        self._iterator: weakref.ref[LoaderIterator] | None = None
        # statistics and bad samples of the engines that reshard() has replaced
        self._earlier: tuple[dict[str, Any] | None, list[dict[str, Any]]] = (None, [])
        _close_at_exit(self)
        if "FEEDLINE_METRICS_PORT" in os.environ:
            from ..serving import metrics

            metrics.serve_by_environment(self)

    def __len__(self) -> int:
        """Returns the number of batches per ``iter()`` on this rank if no sample is bad. Raises TypeError if the number
        of batches is unlimited.
        """
        if self._epochs == math.inf:
            raise TypeError("a loader with epochs=math.inf has no length")
        self._settle()
        count = self._engine.batches * int(self._epochs or 1)
        if count > sys.maxsize:
            raise ConfigError(
                f"loader: epochs={self._epochs} results in more batches than len() can return; use math.inf"
            )
        self._length_given = count
        return count

    def _settle(self, place: ProcessRank | None = None) -> None:
        """Creates a new engine loader if this process's rank has changed before the first epoch."""
        place = place or self._share.place()
        if self._closed or place[:2] == self._place[:2]:
            return
        engine = self._make_engine(place)
        if self._sampler is not None:
            self._sampler.hand_over(engine)
        if self._loaded is not None:
            engine.restore(self._engine.state())
        else:
            engine.set_epoch(self._engine.epoch)
        self._engine.close()
        before, self._engine, self._place = self._place, engine, place
        length = engine.batches * int(self._epochs or 1) if self._epochs != math.inf else None
        if self._length_given not in (None, length):
            _warn(
                "len() of this loader was %s as rank %s of %s, and is now %s as rank %s of %s according to %s",
                *(self._length_given, *before[:2], length, *place),
            )
            self._length_given = None

    def __iter__(self) -> LoaderIterator[Batch]:
        """Starts the next epoch. Ends any earlier iterator, whose ``next()`` then raises :class:`Error`."""
        for held in self._held:
            held.check()
        self._settle(self._share.begin())
        previous = self._iterator() if self._iterator is not None else None
        if previous is not None:
            previous._end("a later iter() of this loader has ended this iterator")
        iterator: LoaderIterator[Batch] = LoaderIterator(self, self._epochs)
        iterator._start_epoch()
        self._resumed_at = 0
        self._loaded = None
        publish(self)
        if self._place.rank == 0 and not self._announced:
            self._announced = True
            _log_plan(self._engine.explain())
        self._iterator = weakref.ref(iterator)
        return iterator

    @property
    def epoch(self) -> int:
        """The current epoch, or the next one to start."""
        return self._engine.epoch

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch that the next ``iter()`` runs; the default is the epoch after the last one."""
        if isinstance(epoch, bool) or not isinstance(epoch, int) or not 0 <= epoch < 2**63:
            raise ConfigError(f"set_epoch: epoch must be an integer from 0 to 2**63 - 1, not {epoch!r}")
        self._engine.set_epoch(epoch)
        self._loaded = None
        self._resumed_at = 0
        if self._sampler is not None:
            self._sampler.forget()

    def set_weights(self, weights: Any) -> None:
        """Sets new weights, which apply from the next epoch on.

        ::

            for epoch in range(90):
                loader.set_weights(weights_of(epoch))
                for image, label in loader: ...

        For a loader with ``weights=`` or ``balanced=True``, pass one weight per sample. A state contains only a hash of
        the sample weights: to resume, set the weights of the state's epoch before calling :meth:`load_state_dict`. For
        a loader over a mixture (:func:`feedline.mix`), pass one weight per dataset; the number of samples per epoch
        does not change. A state contains the weights of a mixture and restores them.

        Raises:
            ConfigError: the loader has no weights, ``weights`` has the wrong length, a weight is negative or not
                finite, or all weights are zero.
        """
        self._set_weights(self._engine, weights)

    @property
    def last_samples(self) -> list[int]:
        """Dataset indices of the rows in the last delivered batch."""
        return self._engine.last_samples

    @property
    def rows_per_rank(self) -> tuple[int, ...]:
        """Number of rows on every rank in the last delivered batch; empty before an epoch's first batch.

        If samples do not divide evenly, an epoch's last batches have fewer rows, and with ``uneven="exact"`` ranks may
        have different numbers of rows: weight a rank's mean by ``rows_per_rank[rank] / sum(rows_per_rank)``.
        """
        return tuple(self._engine.rows_per_rank)

    def state_dict(self) -> dict[str, Any]:
        """Returns the loader's position after the delivered batches; prefetched batches do not count.

        The state is JSON-compatible, smaller than 1 KB, and equal on all ranks that have delivered the same number of
        batches, so saving one rank's state is enough. You can also save a state between epochs or after an epoch's last
        batch.
        """
        self._settle()
        now = self._engine_state()
        return state_module.from_engine(now if self._sampler is None else self._sampler.saved(now), self._revisions)

    def _engine_state(self) -> dict[str, Any]:
        return self._engine.state()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Makes the next ``iter()`` resume at the position of ``state_dict``, without reading earlier samples.

        The numbers of threads and ranks may differ. If ``batch_size`` times the number of ranks is unchanged, the
        global batches are those of the interrupted run; otherwise the loader resumes at the same sample.

        Raises:
            ConfigError: ``state_dict`` is not a state, or was saved with a different or changed dataset, or with
                another seed, order, sample weights or sampler indices.
        """
        self._settle()
        saved = state_module.to_engine(state_dict, self._engine.state())
        state_module.check_revisions(state_dict, self._revisions)
        if self._sampler is not None:
            self._sampler.restore(self._engine, saved)
        else:
            self._engine.restore(saved)
        self._loaded = dict(state_dict)
        self._resumed_at = saved["position"]
        iterator = self._iterator() if self._iterator is not None else None
        if iterator is not None:
            iterator._end("load_state_dict() has ended this iterator")

    def reshard(self, rank: int, world_size: int, *, state: Mapping[str, Any] | None = None) -> None:
        """Continues this run with another rank or number of ranks, between two batches.

        ::

            for batch in loader:
                ...
                if members_changed():                  # a replica left or joined
                    loader.reshard(replica_rank(), replica_count(), state=last_committed)

        The running ``for`` loop continues with the next batch of the new share; other arguments do not change.
        Together, the ranks deliver each remaining sample of the epoch once, if all of them call this method with the
        same position: after the same number of batches, or with the same ``state``. A rank that joins creates its
        loader, and calls ``load_state_dict``, or this method, before its first batch. ``batch_size`` is the size of
        a rank's batch, so the global batch grows and shrinks with ``world_size``.

        Args:
            rank, world_size: the new share.
            state: continue at the position of this ``state_dict()`` instead of after the delivered batches, for example
                if the last step has to be repeated because a rank died during it.

        Raises:
            ConfigError: ``rank`` is not below ``world_size``, or ``state`` does not belong to this loader. The loader
                is then unchanged.
            Error: the loader is closed.
        """
        if self._closed:
            raise Error("reshard: this loader is closed")
        self._settle()
        share = Share("reshard", rank, world_size)
        place = share.place()
        now = self._engine.state()
        saved = now if self._sampler is None else self._sampler.saved(now)
        with state_module.errors_of("reshard"):
            if state is not None:
                saved = state_module.to_engine(state, now)
                state_module.check_revisions(state, self._revisions)
            engine = self._make_engine(place)
            try:
                if self._sampler is not None:
                    self._sampler.hand_over(engine)
                    self._sampler.restore(engine, saved)
                else:
                    engine.restore(saved)
            except BaseException:
                engine.close()
                raise
        iterator = self._iterator() if self._iterator is not None else None
        before, self._engine, self._place, self._share = self._engine, engine, place, share
        self._earlier = (self._added(before.stats()), self._earlier[1] + before.errors())
        before.close()
        self._length_given = None
        if iterator is None or not iterator._move():
            self._loaded = None if state is None else dict(state)
            self._resumed_at = saved["position"]

    def stats(self) -> statistics.Statistics:
        """Returns totals over all epochs so far, and statistics of each stage: see
        :mod:`feedline.loader.statistics`.
        """
        return statistics.summary(self._counters())

    def progress(self, **options: Any) -> Any:
        """Wraps one ``iter()`` in a progress bar that shows the rate and the share of time spent waiting.

        ::

            bar = loader.progress()
            for image, label in bar:
                ...
                bar.set_postfix(loss=f"{loss:.3f}")

        The result is a ``tqdm.auto.tqdm`` of ``len(bar)`` batches, which works in terminals and notebooks and accepts
        tqdm's ``options``. The share is the fraction of the time since the bar began that was spent in the loader's
        ``next()``. After :meth:`load_state_dict` the bar starts at the loader's position. With several ranks, only the
        first rank shows a bar.

        Raises:
            ConfigError: tqdm is not installed.
        """
        from . import progress

        self._settle()
        is_share = self._sampler is not None and self._sampler.is_share
        global_batch = self._batch_size * (1 if is_share else self._place.world_size)
        initial = self._resumed_at // global_batch if global_batch else 0
        return progress.bar(
            self,
            samples=lambda: int(self._counters()["samples"]),
            initial=initial,
            is_first=self._place.rank == 0,
            options={"desc": f"epoch {self.epoch}", **options},
        )

    def metrics(self, port: int = 0, *, name: str | None = None) -> str:
        """Serves :meth:`stats` as metrics on this machine only, until the loader is closed. Returns the URL.

        See :func:`feedline.serving.metrics.serve`. :func:`feedline.serve_metrics` serves all loaders, optionally to
        other machines. The environment variable ``FEEDLINE_METRICS_PORT`` serves the metrics of all loaders.
        """
        if self._closed:
            raise Error("metrics: this loader is closed")
        from ..serving import metrics

        return metrics.serve(self, port, name)

    def _counters(self) -> dict[str, Any]:
        return self._added(self._engine.stats())

    def _added(self, stats: dict[str, Any]) -> dict[str, Any]:
        before = self._earlier[0]
        return stats if before is None else statistics.added(before, stats)

    def _published(self) -> dict[str, Any]:
        return {
            "kind": "Loader",
            "source": _source_in(self._engine.explain()),
            "epoch": self._engine.epoch,
            "batches_per_epoch": self._engine.batches,
            "counters": self._counters(),
        }

    @property
    def errors(self) -> list[BadSample]:
        """All bad samples found so far, in all epochs."""
        return [_bad_sample(row) for row in self._earlier[1] + self._engine.errors()]

    def explain(self) -> str:
        """Returns a text that describes the plan, its numbers, and where each step runs."""
        self._settle()
        return self._explained(self._engine.explain())

    def close(self) -> None:
        """Ends the threads. Batches that you reference remain valid; a later ``next()`` raises :class:`Error`."""
        self._closed = True
        live_loaders.remove(self)
        for module in map(sys.modules.get, ("feedline.serving.metrics", "feedline.serving.publishing")):
            withdraw = getattr(module, "withdraw", None)  # None: not imported, or another thread is importing it
            if withdraw is not None:
                withdraw(self)
        self._engine.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None:
            engine.close()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a feedline.Loader has threads and cannot be pickled: create one in each process")

    def __repr__(self) -> str:
        if self._closed:
            return f"<feedline.Loader of {self._batch_count()} batches, closed>"
        fields = ", ".join(f"{name} {spec}" for name, spec in self._field_specs())
        left = f"; not opened: {listed(self._unopened)}" if self._unopened else ""
        return f"<feedline.Loader of {self._batch_count()} batches{self._rows()}: {fields}{left}; epoch {self.epoch}>"

    def _repr_html_(self) -> str:
        from . import html_table  # imports html, which only notebooks need

        title = f"feedline.Loader of {self._batch_count()} batches"
        if self._closed:
            return html_table.section(f"{title}, closed")
        rows = self._field_specs()
        if self._unopened:
            rows.append(("not opened", listed(self._unopened)))
        stats = self.stats()
        shown = [stats._tables()] if stats["batches"] else []
        title += f"{self._rows()}; epoch {self.epoch}"
        return html_table.section(title, html_table.facts(rows), *shown, html_table.folded("plan", self.explain()))

    def _batch_count(self) -> str:
        return "endless" if self._epochs == math.inf else f"{self._engine.batches * int(self._epochs or 1)}"

    def _rows(self) -> str:
        return f" of {self._batch_size}" if self._batch_size else ""

    def _field_specs(self) -> list[tuple[str, str]]:
        """Returns each field's name and type: a sample's dtype and shape, or ``text``, ``bytes`` or ``json``."""
        kinds = self._kinds()
        specs = _FIELD.findall(self._engine.explain())
        return [(name, spec if kinds.get(name, "array") == "array" else kinds[name]) for name, spec in specs]

    def _next(self, run: int) -> Batch | None:
        if _torch_profiles():
            profiler = sys.modules["torch.autograd.profiler"]
            with profiler.record_function("feedline.Loader.__next__"):
                return self._next_batch(run)
        return self._next_batch(run)

    def _next_batch(self, run: int) -> Batch | None:
        engine = self._engine
        try:
            arrays = engine.next_arrays(run, self._output is not Output.NUMPY, self._output is Output.DLPACK)
        finally:
            if engine.has_errors:
                self._log_bad_samples()
            if engine.changes != self._changes.seen:
                self._changes.write(engine)
        if self._notice is not None:
            self._notice()
        if arrays is not None and self._wrapper is not None:
            arrays = self._wrapper.batch(engine.field_names, arrays)
        return None if arrays is None else self._batch_type(*arrays)

    def _log_bad_samples(self) -> None:
        for row in self._engine.take_errors():
            if row["action"] != "raise":
                _warn("%s: %s", {"skip": "skipped", "replace": "replaced"}[row["action"]], row["exception"])


class LoaderIterator(Iterator[B]):
    """One pass over a loader. After a :class:`DataError` from ``next()``, iteration continues with the next batch.

    Threads may share the iterator: each batch is returned to one thread, and at the end all threads get StopIteration.
    """

    def __init__(self, loader: Loader, epochs: float | None) -> None:
        self._loader = loader
        self._epochs_left = epochs or 1  # epochs that have not started
        self._open_end = epochs is None  # another iter() is likely to follow
        self._run = 0  # the engine's number of this iterator's epoch
        self._starting = importlib.import_module("threading").Lock()  # one thread starts an epoch
        self._without_batch = 0  # epochs that ended since the last batch
        self._ended: str | None = None
        self._exhausted = False
        self._epoch = -1  # the current epoch

    def __next__(self) -> B:
        if self._ended is not None:
            raise Error(self._ended)
        while not self._exhausted:
            run = self._run
            batch: Any = self._loader._next(run)
            if batch is not None:
                self._without_batch = 0
                return batch
            self._follow(run)
        raise StopIteration

    def _follow(self, run: int) -> None:
        """Starts the epoch after ``run``, if one remains and no other thread has started it."""
        with self._starting:
            if self._run != run or self._exhausted:
                return
            if self._loader._engine.run != run:
                raise Error(self._ended or "iter() or load_state_dict() in another thread has ended this iterator")
            self._exhausted = self._epochs_left == 0
            self._without_batch += 1
            if (
                self._without_batch > 1 and self._epochs_left == math.inf
            ):  # the first epoch may be the rest of a resumed one
                raise Error("an epoch had no batches, so epochs=math.inf would never end: see the loader's errors")
            if not self._exhausted:
                self._start_epoch()

    def _start_epoch(self) -> None:
        self._epochs_left -= 1
        prepare_next = self._open_end or self._epochs_left > 0
        feeds_gpu = self._loader._on_gpu or (self._loader._output is not Output.NUMPY and _gpu_in_use())
        engine, sampler = self._loader._engine, self._loader._sampler
        if sampler is not None and not sampler.is_fixed:
            prepare_next = False  # its order is not known yet
            sampler.begin(engine, engine.next_epoch)
        self._epoch = engine.next_epoch
        self._run = engine.start_epoch(prepare_next, feeds_gpu)

    def _move(self) -> bool:
        """Continues in the loader's new engine, which begins at the position that was reached. Returns False if this
        iterator has ended.
        """
        with self._starting:
            if self._ended is not None or self._exhausted:
                return False
            back = self._epoch - self._loader._engine.next_epoch
            if back >= 0:
                self._epochs_left += back + 1  # the rest of this epoch, or of an earlier one and those after it
            elif self._epochs_left == 0:  # all batches of the last epoch were delivered
                self._exhausted = True
                return True
            self._start_epoch()
            return True

    def __len__(self) -> int:
        return len(self._loader)

    def _end(self, reason: str) -> None:
        if not self._exhausted:
            self._ended = reason


def publish(loader: Any) -> None:
    """Adds a loader that starts an epoch to the process's metrics, and publishes it to ``feedline top``, unless
    FEEDLINE_PUBLISH=0 is set.
    """
    live_loaders.add(loader)
    if os.environ.get("FEEDLINE_PUBLISH", "1") != "0":
        try:
            from ..serving import publishing
        except ImportError:  # another thread's error while the interpreter exits
            return
        publishing.offer(loader)


def _source_in(explained: str) -> str:
    """Returns the text after the format's name in the explanation of a plan."""
    return next((line.partition(", ")[2] for line in explained.split("\n") if line.startswith("format ")), "")


def _torch_profiles() -> bool:
    """Returns whether a torch profiler is recording, whose trace then shows the loader's time."""
    autograd = sys.modules.get("torch.autograd")
    return autograd is not None and bool(autograd._profiler_enabled())


def _gpu_in_use() -> bool:
    """Returns whether torch has initialised a GPU in this process. The thread that launches the GPU's work needs a
    CPU.
    """
    cuda = sys.modules.get("torch.cuda")
    return cuda is not None and bool(cuda.is_initialized())


def _log_plan(explained: str) -> None:
    """Logs the plan's lines at INFO, if logging is configured."""
    if "logging" in sys.modules:
        import logging  # another thread may be importing it

        lines = explained.partition("\nformat")[0].split("\n")
        logging.getLogger("feedline").info("%s", "; ".join(line.removeprefix("plan").strip() for line in lines))


def _warn(text: str, *values: Any) -> None:
    # imported here because it takes a third of Feedline's import time, and few runs warn
    import logging

    logging.getLogger("feedline").warning(text, *values)


def _bad_sample(row: dict[str, Any]) -> BadSample:
    error: Error = row["exception"]
    return BadSample(
        dataset=error.dataset,
        shard=error.shard,
        key=error.key,
        record=row["record"],
        offset=error.offset,
        stage=error.stage,
        message=str(error),
        code=row["code"],
        epoch=row["epoch"],
        batch=row["batch"],
        action=row["action"],
    )


def _require_torch() -> None:
    try:
        importlib.import_module("torch.utils.dlpack")
    except ImportError as error:
        raise ConfigError(
            f'loader: output="torch" requires torch, which cannot be imported ({error}); install it, or pass '
            'output="numpy"'
        ) from None


def _close_at_exit(loader: Loader) -> None:
    global _running
    if _running is None:
        _running = weakref.WeakSet()
        atexit.register(_close_all)
    _running.add(loader)


def _close_all() -> None:
    # in a forked child the engine does not touch the parent's loaders
    for loader in list(_running or ()):
        loader.close()
