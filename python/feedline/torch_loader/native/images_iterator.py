# SPDX-License-Identifier: Apache-2.0
"""Batches of image files that the engine reads, transforms and collates, in the order of the loader's samplers."""

from __future__ import annotations

import collections
import contextlib
import logging
import math
import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy
import torch
from torch.utils.data import BatchSampler
from torch.utils.data._utils.collate import default_collate

from ... import _engine
from ...errors import StalledError
from ...loader import changes
from ..fetching import fetch
from ..lowering.datasets import sources
from ..lowering.functions.collate_functions import Stock
from ..options.devices import to_device
from ..options.settings import Settings
from ..state.loader_progress import LoaderProgress
from .native_iterator import Late, NativeIterator
from .plans import ImagePlan

_log = logging.getLogger("feedline")
_MASK = (1 << 64) - 1
_BATCHES_AHEAD = 2  # threads share a batch, so one being filled and one being delivered keep them all busy
_SMALL_BATCHES = 4 << 20  # bytes: more batches if they are smaller
_READ_AHEAD = 32 << 20  # bytes: the maximum that the engine prefetches if the storage is slow
_SPREAD = 0x9E3779B97F4A7C15  # odd, so that different samples draw from different numbers


@dataclass
class Begun:
    """A batch that the engine is reading.

    Attributes:
        first: the number that the engine assigned to the batch's first file.
        labels: the values of the batch's samples other than images.
    """

    first: int
    labels: list[Any]


class NativeImageIterator(NativeIterator):
    """The engine reads samples in the order of the samplers. Samples that the engine cannot read are read by the
    dataset, one by one.
    """

    _draws_from_base_seed = True

    def __init__(self, loader: Any, plan: ImagePlan) -> None:
        self._plan = plan
        self._pipeline: Pipeline | None = None
        self._by_pillow = _decoded_by_pillow()
        super().__init__(loader)

    def _start(self, loader: Any) -> None:
        self._size = _expected_size(loader)
        self._cuda_device = self._gpu(Settings.of(loader).device)
        super()._start(loader)

    def _gpu(self, device: torch.device | None) -> int | None:
        """Returns the GPU to which the engine copies batches, or None if they stay in host memory and are moved like
        torch's batches.
        """
        if device is None or device.type != "cuda" or not isinstance(self._plan.collation, Stock):
            return None  # a user's function collates in host memory
        return torch.cuda.current_device() if device.index is None else device.index

    def _finished(self, data: Any) -> Any:
        if self._cuda_device is None:
            return super()._finished(data)
        return to_device(data, self._settings.device)  # images are there already

    def _begin(self, index: Any, batch: int) -> Begun | None:
        try:
            found = [sources.locate(self._dataset, i) for i in index]
            samples = [sources.samples_of(leaf)[i] for leaf, i in found]
            paths, labels = [os.fsencode(path) for path, _ in samples], [label for _, label in samples]
            draws = [self._draw(int(i), batch, row) for row, i in enumerate(index)]
        except Exception:
            return None  # the dataset raises it again at the point where torch would
        if not paths:
            return None
        return Begun(self._ready(paths).give(paths, draws), labels)

    def _fits(self, index: Any) -> bool:
        # Batches of a user's sampler may grow.
        return self._pipeline is None or not hasattr(index, "__len__") or len(index) <= self._size

    def _open(self) -> None:
        if self._pipeline is not None:
            self._pipeline.give_back()
        self._pipeline = self._opened(self._plan, 0)

    def _opened(self, plan: ImagePlan, image: int) -> Pipeline:
        """Returns a pipeline for one image of each sample: the number `image` among the sample's images."""
        settings, images = self._settings, 1 + len(self._plan.more)
        limit = settings.memory_budget
        setting = Setting(
            dataset=plan.arrays or (plan.dataset if plan.files is None else None),
            operations=tuple(plan.dataset.operations),
            batch_size=self._size,
            threads=max(1, plan.threads // images),
            adapts=plan.adapts,
            seed=0 if settings.seed is None else settings.seed & _MASK,
            timeout_s=self._timeout or settings.stall_timeout,
            memory_budget=None if limit is None else limit // images,
            cuda_device=self._cuda_device,
            image=image,
        )
        pipeline = Pipeline.take(self._progress, settings, setting, plan)
        pipeline.begin(self._cursor.epoch)
        return pipeline

    def _draw(self, sample: int, batch: int, row: int) -> int:
        """Returns a sample's key for random operations, which are also seeded by the loader's seed and the epoch."""
        if not self._plan.unique:
            sample = fetch.seed_of(sample, batch, row)
        return sample & _MASK if self._settings.seed is not None else (self._base_seed + sample * _SPREAD) & _MASK

    def _finish(self, index: Any, begun: Begun | None) -> Any:
        if begun is None:
            return self._in_python(index)
        images, bad = self._take(begun)
        images, labels = self._first_rows(images, len(index)), begun.labels[: len(index)]
        bad = [row for row in bad if row < len(index)]
        progress = self._progress
        progress.native_rows += len(index)
        before, self._by_pillow = self._by_pillow, _decoded_by_pillow()
        progress.native_misses += self._by_pillow - before  # one at a time, so workers would be faster
        if not bad:
            return self._collated(images, labels, index)
        if not progress.native_misses:
            _log.info("the engine does not read all files; the dataset reads the remaining files in this process")
        progress.native_misses += len(bad)
        return self._replace_bad(index, self._samples(images, labels), set(bad))

    def _first_rows(self, images: Any, count: int) -> Any:
        return images[:count]

    def _samples(self, images: Any, labels: list[Any]) -> list[Any]:
        """The rows of a batch as samples of the dataset."""
        return list(zip(images.cpu(), labels, strict=True))

    def _collated(self, images: Any, labels: list[Any], index: Any) -> Any:
        batch = [images, default_collate(tuple(labels))]  # as torch transposes samples: text stays in a tuple
        if isinstance(self._plan.collation, Stock):
            return batch
        try:
            with fetch.untouched_generators() if self._seeded else contextlib.nullcontext():
                self._dataset_fetcher.seed("collate", index)
                return self._plan.collation(batch)
        except Exception:
            return self._in_python(index)  # raises it with torch's message

    def _take(self, begun: Any) -> tuple[Any, list[int]]:
        """Returns the engine's next batch, and the rows that the engine could not read."""
        batch = self._next_batch()
        assert self._pipeline is not None
        self._pipeline.forget(begun.first)
        return batch.to_torch()[0], [row for row, _ in batch.bad]

    def _next_batch(self, pipeline: Pipeline | None = None) -> Any:
        """Returns the next batch of `pipeline`, by default of the first one."""
        pipeline = pipeline or self._pipeline
        assert pipeline is not None
        try:
            batch = pipeline.next()
        except (StalledError, KeyboardInterrupt) as error:
            raise Late(error) from None
        assert batch is not None
        return batch

    def _ready(self, rows: list[Any]) -> Pipeline:
        """Returns the pipeline, with room for a batch of these rows."""
        if self._pipeline is None or not self._fits(rows):
            self._size = max(self._size, len(rows))
            self._open()
        assert self._pipeline is not None
        return self._pipeline

    def _replace_bad(self, index: Any, samples: list[Any], bad: set[int]) -> Any:
        """Returns the batch with its bad rows read by the dataset, which may raise errors or return replacements."""
        good: dict[Any, collections.deque[Any]] = {}
        for row, sample in enumerate(index):
            if row not in bad:
                good.setdefault(sample, collections.deque()).append(samples[row])
        whole = self._dataset_fetcher
        self._dataset_fetcher = fetch.make_fetcher(
            whole.config, _Overlay(self._dataset, good), self._cursor.epoch, None, lambda stage, sample: None
        )
        try:
            return self._in_python(index)
        finally:
            self._dataset_fetcher = whole

    def _abandon(self) -> None:
        super()._abandon()
        if self._pipeline is not None:
            self._pipeline.give_back()
            self._pipeline = None

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):
            self._abandon()


class _Overlay:
    """A dataset with some samples that have already been read."""

    def __init__(self, dataset: Any, ready: dict[Any, collections.deque[Any]]) -> None:
        self._inner, self._ready = dataset, ready

    def __getitem__(self, index: Any) -> Any:
        ready = self._ready.get(index)
        return ready.popleft() if ready else self._inner[index]

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        if name == "__getitems__":
            raise AttributeError(name)
        return getattr(self._inner, name)


class Setting(NamedTuple):
    """The settings of a pipeline, which can be reused only with equal settings.

    `memory_budget`: the user's limit, in bytes. `dataset`: the dataset of the samples; None if files are added by name.
    `cuda_device`: the GPU that stores the batches; None for host memory. `image`: the image's number in its sample.
    """

    dataset: Any
    operations: tuple[str, ...]
    batch_size: int
    threads: int
    adapts: bool
    seed: int
    timeout_s: float
    memory_budget: int | None
    cuda_device: int | None
    image: int


class Pipeline:
    """An engine loader that follows a given order over given files, or over a dataset's own samples.

    Used by one iterator and one thread at a time. Between epochs, the pipeline is stored with its loader's progress, so
    that the pipeline's threads and memory are reused.
    """

    _resting: ClassVar[weakref.WeakKeyDictionary[Any, dict[int, Pipeline]]] = weakref.WeakKeyDictionary()
    _lock = threading.Lock()

    def __init__(self, progress: LoaderProgress, settings: Settings, setting: Setting, plan: ImagePlan) -> None:
        self.setting = setting
        self.files = None if plan.files is None else plan.files.engine
        self._owner, self._pid = weakref.ref(progress), os.getpid()
        one = _batch_bytes(plan, setting)
        batches = max(_BATCHES_AHEAD * one, _SMALL_BATCHES)
        ahead = batches + _READ_AHEAD if setting.memory_budget is None else setting.memory_budget
        budget = max(min(ahead, settings.budget_bytes()), one)
        self.engine = _engine.make_given_loader(
            plan.dataset._engine,
            {
                "batch_size": setting.batch_size,
                "seed": setting.seed,
                "num_workers": 0 if setting.adapts else setting.threads,
                "most_workers": setting.threads,
                "memory_budget": budget,
                "timeout": setting.timeout_s,
                "cuda_device": setting.cuda_device,
            },
        )
        self._feeds_gpu = settings.feeds_gpu()
        self._changes = changes.Log()
        self._closing = weakref.finalize(self, self.engine.close)

    @classmethod
    def take(cls, progress: LoaderProgress, settings: Settings, setting: Setting, plan: ImagePlan) -> Pipeline:
        """Returns the pipeline stored with `progress` if its settings match, or a new one."""
        with cls._lock:
            resting = cls._resting.get(progress, {}).pop(setting.image, None)
        if resting is not None and resting.setting == setting and resting._pid == os.getpid():
            return resting
        return cls(progress, settings, setting, plan)

    def begin(self, epoch: int) -> None:
        self.engine.set_epoch(epoch)
        self.engine.start_epoch(feeds_gpu=self._feeds_gpu)

    def give(self, files: list[Any], draws: list[int]) -> int:
        """Adds the next batch, given as paths, or as images in the form of `GivenFiles.add_images`.

        Returns the number of the batch's first file, to be passed to `forget` after the batch is delivered.
        """
        assert self.files is not None
        first: int = self.files.add(files) if isinstance(files[0], bytes) else self.files.add_images(files)
        self.engine.give(list(range(first, first + len(files))), draws)
        return first

    def forget(self, first: int) -> None:
        """Removes the files of a delivered batch."""
        assert self.files is not None
        self.files.forget(first)

    def next(self) -> Any:
        """Returns the engine's next batch; None after the last one."""
        batch = self.engine.next()
        if self.engine.changes != self._changes.seen:
            self._changes.write(self.engine)
        return batch

    def give_back(self) -> None:
        """Called when the pipeline is no longer needed in this epoch."""
        if self._pid != os.getpid() or not self._closing.alive:  # closed if it became garbage together with its
            # iterator
            return
        self.begin(0)  # abandons batches in flight
        if self.files is not None:
            self.files.forget_all()
        owner = self._owner()
        if owner is not None:
            with self._lock:
                self._resting.setdefault(owner, {})[self.setting.image] = self


def _decoded_by_pillow() -> int:
    """Returns the number of images that the engine's threads in this process have passed to Pillow."""
    return sum(_engine.foreign_images_decoded().values())


def _expected_size(loader: Any) -> int:
    """Returns the number of samples in the largest batch, or 1 if this number is unknown before the first batch."""
    sampler = loader.batch_sampler
    if type(sampler) is not BatchSampler:
        return 1
    try:
        return max(1, min(sampler.batch_size, len(sampler.sampler)))  # type: ignore[arg-type]
    except TypeError:
        return 1


def _batch_bytes(plan: ImagePlan, setting: Setting) -> int:
    page = 4096
    rows = 0
    for shape, dtype in plan.dataset.schema.values():
        rows += setting.batch_size * math.prod(shape) * numpy.dtype(dtype).itemsize
    return rows + page
