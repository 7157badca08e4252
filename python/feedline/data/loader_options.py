# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of `Dataset.loader`, converts them to the engine's options, and creates the loader.

`Dataset.loader` declares the arguments: their names, types, defaults and documentation. Each option of the engine has a
line in `CHECKS` in this file and a line in include/feedline/loader_options.def.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from .. import _engine
from ..errors import ConfigError
from ..loader import gpu
from ..loader.loader import Loader, Output
from ..loader.sampler_order import SamplerOrder, repeatable
from ..loader.tv_tensors import Wrapper
from ..loader.unopened import columns_of
from ..machine import ranks
from . import arguments, image_depth
from .selection import sample_weights

_WHERE = "loader"
_BIG = 2**63 - 1
_LONGEST_S = 10.0**9  # the longest timeout: 30 years


def _count(where: str, name: str, value: Any) -> int:
    return arguments.integer(where, name, value, low=1, high=_BIG)


def _thread_count(where: str, _: str, num_workers: Any) -> int:
    if isinstance(num_workers, str) and num_workers == "auto":
        return 0  # the engine's value for it
    # in PyTorch 0 means no worker process; one thread is the closest equivalent
    return arguments.worker_count(where, num_workers) or 1


def _seconds(where: str, name: str, value: Any) -> float:
    seconds = arguments.real(where, name, value)
    if seconds <= 0:
        raise ConfigError(f"{where}: {name} must be a positive number of seconds or None, not {value!r}")
    return max(0.001, min(seconds, _LONGEST_S))  # 0 means no limit to the engine, which counts milliseconds


def _length(where: str, name: str, value: Any) -> float:
    seconds = arguments.real(where, name, value)
    if seconds <= 0:
        raise ConfigError(f"{where}: {name} must be a positive number of seconds or None, not {value!r}")
    return seconds


def _dtype(where: str, _: str, value: Any) -> str:
    return arguments.dtype(where, value, also=("bfloat16",))


def _word(_where: str, _name: str, value: Any) -> Any:
    return value  # the engine knows the words


# Arguments that are options of the engine, and how each is checked.
CHECKS: dict[str, Callable[[str, str, Any], Any]] = {
    "batch_size": _count,
    "seed": lambda where, name, value: arguments.integer(where, name, value, low=0, high=2**64 - 1),
    "drop_last": arguments.flag,
    "num_workers": _thread_count,
    "memory_budget": arguments.byte_count,
    "decoder_budget": arguments.byte_count,
    "in_order": arguments.flag,
    "on_error": _word,
    "error_budget": lambda where, name, value: arguments.integer(where, name, value, low=0, high=_BIG),
    "uneven": _word,
    "dtype": _dtype,
    "layout": _word,
    "timeout": _seconds,
    "max_tokens": _count,
    "max_seconds": _length,
    "repeat": _count,
    "mixup": arguments.real,
    "cutmix": arguments.real,
    "num_classes": _count,
    "label_smoothing": arguments.real,
    "mix_probability": arguments.real,
    "switch_probability": arguments.real,
    "mix_mode": _word,
    "partner": _word,
}
# None keeps the engine's default of these.
_OPTIONAL = frozenset(
    {
        "batch_size",
        "memory_budget",
        "decoder_budget",
        "dtype",
        "timeout",
        "max_tokens",
        "max_seconds",
        "num_classes",
        "partner",
    }
)


def engine_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the engine's options for the arguments of `Dataset.loader`, or for some of them, except rank and
    device.
    """
    options = {
        name: check(_WHERE, name, given[name])
        for name, check in CHECKS.items()
        if name in given and (given[name] is not None or name not in _OPTIONAL)
    }
    shuffle, window = given["shuffle"], _count(_WHERE, "shuffle_window", given["shuffle_window"])
    by_shards = isinstance(shuffle, str) and shuffle == "shards"
    options["shuffle"] = by_shards or arguments.flag(_WHERE, "shuffle", shuffle, or_word="shards")
    options["shard_window"] = window if by_shards else 0
    if "buckets" in given:
        options["bucket_bounds"], options["buckets"] = arguments.buckets(_WHERE, given["buckets"])
    return options


def make_loader(dataset: _engine.Dataset, given: Mapping[str, Any]) -> Loader:
    """Creates a loader. Raises ConfigError if an argument is wrong; reads nothing.

    Args:
        given: all arguments of `Dataset.loader`, by name.
    """
    output = Output(arguments.choice(_WHERE, "output", given["output"], ("torch", "numpy", "tv_tensors", "dlpack")))
    cuda_device = gpu.index_of(_WHERE, given["device"], output)
    if output is Output.NUMPY and given["dtype"] is not None and _dtype(_WHERE, "dtype", given["dtype"]) == "bfloat16":
        raise ConfigError(f'{_WHERE}: NumPy has no bfloat16; pass output="torch" or output="dlpack"')
    wrapper = _wrapper(dataset, given["layout"]) if output is Output.TV_TENSORS else None
    share = ranks.Share(_WHERE, given["rank"], given["world_size"], given["mesh"], given["dp"])
    try:
        place = share.place()
    except ConfigError:  # raised again at the first use, unless a process group is initialised by then
        place = ranks.ProcessRank(0, 1, "")
    options = engine_options(given) | {"cuda_device": cuda_device}
    given = {**given, "sampler": repeatable(given["sampler"], len(dataset))}
    if given["weights"] is not None:  # a copy: the caller may change the array
        given["weights"] = arguments.weights(_WHERE, given["weights"])
    order = sample_weights.order_of(dataset, given)
    sampler = order if isinstance(order, SamplerOrder) else None
    if order is not None:
        options["sampling"] = order.first if isinstance(order, SamplerOrder) else order

    def make_engine(place: ranks.ProcessRank) -> _engine.Loader:
        if sampler is not None:
            sampler.check(place)
            place = ranks.ProcessRank(0, 1, "the sampler") if sampler.is_share else place
        engine = _engine.make_loader(dataset, options | {"rank": place.rank, "world_size": place.world_size})
        if engine.batches == 0:
            samples = len(dataset) if order is None else options["sampling"].positions
            _report_no_batch(given, samples, place.world_size)
        for weights in latest_weights:
            sample_weights.set_weights(engine, dataset, given, weights)
        return engine

    latest_weights: list[list[float]] = []  # the last argument of set_weights(), if it was called

    def set_weights(engine: _engine.Loader, weights: Any) -> None:
        numbers = arguments.weights("set_weights", weights)
        sample_weights.set_weights(engine, dataset, given, numbers)
        latest_weights[:] = [numbers]

    def remake(num_workers: int) -> Loader:
        loader = make_loader(dataset, {**given, "num_workers": num_workers})
        for weights in latest_weights:
            loader.set_weights(weights)
        return loader

    engine = make_engine(place)
    warn_of_blocks(engine)
    return Loader(
        engine,
        output,
        place=place,
        share=share,
        make_engine=make_engine,
        epochs=epoch_count(given["epochs"]),
        remake=remake,
        wrapper=wrapper,
        kinds=lambda: {name: kind for name, _, _, _, kind in dataset.schema()},
        explained=lambda text: _explained(text, dataset),
        on_gpu=cuda_device is not None,
        batch_size=0 if given["buckets"] or given["max_tokens"] or given["max_seconds"] else given["batch_size"] or 0,
        unopened=columns_of(dataset),
        notice=lambda: image_depth.warn(dataset),
        sampler=sampler,
        set_weights=set_weights,
    )


def _wrapper(dataset: _engine.Dataset, layout: Any) -> Wrapper:
    if layout != "NCHW":
        raise ConfigError(f'{_WHERE}: output="tv_tensors" requires layout="NCHW"')
    return Wrapper(_WHERE, dataset.roles())


def _report_no_batch(given: Mapping[str, Any], samples: int, world_size: int) -> None:
    """Warns if an epoch has no batches; raises ConfigError if next() would never return a batch."""
    over = f" over {world_size} ranks" if world_size > 1 else ""
    size = "" if given["batch_size"] is None else f" of batch_size={given['batch_size']}{over}"
    advice = "remove drop_last" if given["drop_last"] else "change uneven"
    text = f"loader: an epoch has no batches: {samples} samples do not fill a batch{size}; lower batch_size or {advice}"
    if given["epochs"] == math.inf:
        raise ConfigError(f"{text}; with epochs=math.inf next() would never return")
    warnings.warn(text, stacklevel=5)  # the caller of Dataset.loader, or on other ranks of the first use


def warn_of_blocks(engine: _engine.Loader) -> None:
    """Warns if the loader would decompress much more than it delivers."""
    if text := engine.warning():
        warnings.warn(f"loader: {text}", stacklevel=4)  # the caller of Dataset.loader


def epoch_count(epochs: Any) -> float | None:
    if epochs is None or (isinstance(epochs, float) and epochs == math.inf):
        return epochs
    return arguments.integer(_WHERE, "epochs (or math.inf)", epochs, low=1, high=_BIG)


def _explained(text: str, dataset: _engine.Dataset) -> str:
    from .storage import foreign_images, storage_types  # imports the texts of findings

    return image_depth.explained(
        foreign_images.with_pillow_counts(storage_types.explained(text, dataset.source)), dataset
    )
