# SPDX-License-Identifier: Apache-2.0
"""Loader options: stored as given; checked and converted for the engine when a loader is created."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _engine
from ..errors import ConfigError
from ..loader import gpu
from ..loader.loader import Loader, Output
from ..loader.tv_tensors import Wrapper
from ..loader.unopened import columns_of
from ..machine import ranks
from . import arguments, image_depth

_WHERE = "loader"
_BIG = 2**63 - 1
_LONGEST_S = 10.0**9  # the longest timeout: 30 years


class LoaderOptions(NamedTuple):
    """The arguments of :meth:`Dataset.loader`, which documents them and has their defaults."""

    batch_size: int | None
    shuffle: bool | str
    shuffle_window: int
    seed: int
    drop_last: bool
    num_workers: int | str
    memory_budget: int | str | None
    in_order: bool
    on_error: str
    error_budget: int
    rank: int | None
    world_size: int | None
    mesh: Any
    dp: str | int | Sequence[str | int] | None
    uneven: str
    epochs: float | None
    device: Any
    dtype: Any
    layout: str
    output: str
    timeout: float | None
    buckets: int | Sequence[int] | None
    max_tokens: int | None
    repeat: int
    mixup: float
    cutmix: float
    num_classes: int | None
    label_smoothing: float
    mix_probability: float
    switch_probability: float
    mix_mode: str
    partner: str | None

    def make_loader(self, dataset: _engine.Dataset) -> Loader:
        """Creates a loader over ``dataset``. Raises ConfigError if an option is wrong; reads nothing."""
        output = Output(arguments.choice(_WHERE, "output", self.output, ("torch", "numpy", "tv_tensors", "dlpack")))
        cuda_device = gpu.index_of(_WHERE, self.device, output)
        self._check_dtype(output)
        wrapper = self._wrapper(dataset) if output is Output.TV_TENSORS else None
        share = ranks.Share(_WHERE, self.rank, self.world_size, self.mesh, self.dp)
        try:
            place = share.place()
        except ConfigError:  # raised again at the first use, unless a process group is initialised by then
            place = ranks.Place(0, 1, "")

        def make_engine(place: ranks.Place) -> _engine.Loader:
            engine = self._engine_loader(dataset, place.rank, place.world_size, cuda_device)
            if engine.batches == 0:
                self._report_no_batch(len(dataset), place.world_size)
            return engine

        engine = make_engine(place)
        return Loader(
            engine,
            output,
            place=place,
            share=share,
            make_engine=make_engine,
            epochs=_epoch_count(self.epochs),
            remake=lambda num_workers: self._replace(num_workers=num_workers).make_loader(dataset),
            wrapper=wrapper,
            explained=lambda text: _explained(text, dataset),
            on_gpu=cuda_device is not None,
            batch_size=0 if self.buckets or self.max_tokens else self.batch_size or 0,
            unopened=columns_of(dataset),
            notice=lambda: image_depth.warn(dataset),
        )

    def _check_dtype(self, output: Output) -> None:
        if output is Output.NUMPY and self._dtype() == "bfloat16":
            raise ConfigError(f'{_WHERE}: NumPy has no bfloat16; pass output="torch" or output="dlpack"')

    def _dtype(self) -> str | None:
        return None if self.dtype is None else arguments.dtype(_WHERE, self.dtype, also=("bfloat16",))

    def _wrapper(self, dataset: _engine.Dataset) -> Wrapper:
        if self.layout != "NCHW":
            raise ConfigError(f'{_WHERE}: output="tv_tensors" requires layout="NCHW"')
        return Wrapper(_WHERE, dataset.roles())

    def _engine_loader(
        self, dataset: _engine.Dataset, rank: int, world_size: int, cuda_device: int | None
    ) -> _engine.Loader:
        window = _count("shuffle_window", self.shuffle_window)
        bounds, bucket_count = arguments.buckets(_WHERE, self.buckets)
        max_tokens = 0 if self.max_tokens is None else _count("max_tokens", self.max_tokens)
        if self.batch_size is None and max_tokens == 0:
            raise ConfigError("loader: pass batch_size, or buckets and max_tokens")
        by_shards = isinstance(self.shuffle, str) and self.shuffle == "shards"
        return _engine.make_loader(
            dataset,
            batch_size=0 if self.batch_size is None else _count("batch_size", self.batch_size),
            shuffle=by_shards or arguments.flag(_WHERE, "shuffle", self.shuffle, or_word="shards"),
            shard_window=window if by_shards else 0,
            seed=arguments.integer(_WHERE, "seed", self.seed, low=0, high=2**64 - 1),
            drop_last=arguments.flag(_WHERE, "drop_last", self.drop_last),
            num_workers=_thread_count(self.num_workers),
            memory_budget=_budget_bytes(self.memory_budget),
            in_order=arguments.flag(_WHERE, "in_order", self.in_order),
            on_error=self.on_error,
            error_budget=arguments.integer(_WHERE, "error_budget", self.error_budget, low=0, high=_BIG),
            rank=rank,
            world_size=world_size,
            uneven=self.uneven,
            dtype=self._dtype(),
            layout=self.layout,
            timeout_ms=_milliseconds(self.timeout),
            bucket_bounds=bounds,
            buckets=bucket_count,
            max_tokens=max_tokens,
            repeat=_count("repeat", self.repeat),
            mixup=arguments.real(_WHERE, "mixup", self.mixup),
            cutmix=arguments.real(_WHERE, "cutmix", self.cutmix),
            num_classes=0 if self.num_classes is None else _count("num_classes", self.num_classes),
            label_smoothing=arguments.real(_WHERE, "label_smoothing", self.label_smoothing),
            mix_probability=arguments.real(_WHERE, "mix_probability", self.mix_probability),
            switch_probability=arguments.real(_WHERE, "switch_probability", self.switch_probability),
            mix_mode=self.mix_mode,
            partner=self.partner,
            cuda_device=cuda_device,
        )

    def _report_no_batch(self, samples: int, world_size: int) -> None:
        """Warns if an epoch has no batch; raises ConfigError if next() would never find one."""
        over = f" over {world_size} ranks" if world_size > 1 else ""
        size = "" if self.batch_size is None else f" of batch_size={self.batch_size}{over}"
        advice = "remove drop_last" if self.drop_last else "change uneven"
        text = f"loader: an epoch has no batch: {samples} samples do not fill one{size}; lower batch_size or {advice}"
        if self.epochs == math.inf:
            raise ConfigError(f"{text}; with epochs=math.inf next() would never return")
        warnings.warn(text, stacklevel=5)  # the caller of Dataset.loader, or on other ranks of the first use


def _count(name: str, value: Any) -> int:
    return arguments.integer(_WHERE, name, value, low=1, high=_BIG)


def _thread_count(num_workers: int | str) -> int:
    if isinstance(num_workers, str) and num_workers == "auto":
        return 0  # the engine's name for it
    # in PyTorch 0 means no worker process; one thread is the closest equivalent
    return arguments.worker_count(_WHERE, num_workers) or 1


def _budget_bytes(memory_budget: int | str | None) -> int:
    return 0 if memory_budget is None else arguments.byte_count(_WHERE, "memory_budget", memory_budget)


def _milliseconds(timeout: float | None) -> int:
    if timeout is None:
        return 0
    seconds = arguments.real(_WHERE, "timeout", timeout)
    if seconds <= 0:
        raise ConfigError(f"loader: timeout must be a positive number of seconds or None, not {timeout!r}")
    return max(1, round(min(seconds, _LONGEST_S) * 1000))


def _epoch_count(epochs: float | None) -> float | None:
    if epochs is None or (isinstance(epochs, float) and epochs == math.inf):
        return epochs
    return arguments.integer(_WHERE, "epochs (or math.inf)", epochs, low=1, high=_BIG)


def _explained(text: str, dataset: _engine.Dataset) -> str:
    from . import foreign_images, storage_types  # imports the texts of findings

    return image_depth.explained(
        foreign_images.with_pillow_counts(storage_types.explained(text, dataset.source)), dataset
    )
