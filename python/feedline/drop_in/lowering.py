# SPDX-License-Identifier: Apache-2.0
"""Which part of a loader runs in the engine's native threads, and why the rest does not.

Everything is matched by exact type: a subclass may do anything, and stays in Python. Three outcomes:

    whole    reading, transforming and collating run natively, in this process (ImagePlan, ArrayPlan)
    prefix   workers read and transform natively as far as the engine knows the way, and go on in Python (PrefixPlan)
    Reason   nothing runs natively
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.utils.data import BatchSampler
from torch.utils.data._utils import collate as torch_collate

from ..data.dataset import Dataset
from ..data.draws import is_random
from ..errors import ConfigError
from ..machine import limits
from . import (
    annotated_datasets,
    arrow_images,
    arrow_streams,
    encoded_fields,
    image_arrays,
    known_batch_functions,
    known_collate,
    known_init_functions,
    known_views,
    native_webdataset,
    remote_shards,
    sources,
    transforms,
)
from .arrow_prefix import ArrowPrefix
from .arrow_streams import ArrowStream
from .course import Course
from .native_prefix import NativeCrops, NativePrefix
from .orders import is_unique
from .settings import Settings

NATIVE = "native"
_STOCK_COLLATE = dict(torch_collate.default_collate_fn_map)
_STOCK = known_collate.Stock()
_DECODED = (".jpg", ".jpeg", ".png", ".webp")
_LOOKED_AT = 64  # files whose names are looked at before the first is read
_DRAWN_IN_WORKERS = "the engine's own random numbers, by one of torch's for each sample"
_MOST_FOREIGN = 0.05  # of files in formats that the engine does not decode: Pillow reads those in this process


@dataclass(frozen=True)
class Stage:
    """One line of `explain()`."""

    name: str
    what: str
    runs: str
    why: str


@dataclass(frozen=True)
class Reason:
    """Nothing is lowered: what each stage does instead, and why."""

    stages: list[Stage]


class LoweredPlan(Protocol):
    """A loader that runs natively from reading to collating."""

    stages: list[Stage]

    def iterate(self, loader: Any) -> Iterator[Any]:
        """Batches of one epoch, in the order of the loader's own samplers."""
        ...


@dataclass(frozen=True)
class ImagePlan:
    """Image files, transformed by a chain that the engine knows whole; or the samples of a `feedline.Dataset`."""

    stages: list[Stage]
    dataset: Dataset
    files: Any  # sources.GivenFiles, which the samples are read as; None: they are those of `dataset`
    threads: int
    unique: bool  # no sample comes twice in an epoch
    adapts: bool  # `threads` is the most; as many work as the loop needs
    collation: Any = _STOCK  # what becomes of the images and labels of a batch: known_collate's, or of columns
    arrays: Any = None  # image_arrays.ImageArrays or arrow_images.ImageTable, whose rows the samples are

    def iterate(self, loader: Any) -> Iterator[Any]:
        if self.arrays is not None and self.files is not None:
            from .native_arrow_images import NativeArrowIterator

            return NativeArrowIterator(loader, self)
        if self.arrays is not None:
            from .native_image_arrays import NativeImageArrayIterator

            return NativeImageArrayIterator(loader, self)
        if self.files is None:
            from .native_datasets import NativeDatasetIterator

            return NativeDatasetIterator(loader, self)
        from .native_images import NativeImageIterator

        return NativeImageIterator(loader, self)


@dataclass(frozen=True)
class ArrayPlan:
    """Rows of arrays that are in memory or mapped."""

    stages: list[Stage]
    table: Any  # native_arrays.Table
    threads: int  # 0: gathered in the calling thread

    def iterate(self, loader: Any) -> Iterator[Any]:
        from .native_arrays import ArrayIterator

        return ArrayIterator(loader, self)


@dataclass(frozen=True)
class PrefixPlan:
    """Image files whose first transforms run natively, within each worker."""

    stages: list[Stage]
    known: tuple[str, ...]  # names of the transforms that run natively
    wrap: Callable[[Any], Any]  # the dataset that workers read in the place of yours


Plan = ImagePlan | ArrayPlan | PrefixPlan | Reason


def plan_lowering(settings: Settings, course: Course) -> Plan:
    """What of a loader with `settings` runs natively, after what its epochs have told."""
    blocked = 'lower="never"' if settings.lower == "never" else _blocked(settings)
    if blocked:
        if settings.iterable and native_webdataset.is_pipeline(settings.dataset):
            remote_shards.refuse(settings.dataset.pipeline, blocked, settings.lower == "require")
        return _reason(settings, blocked)
    if settings.iterable:
        is_arrow = arrow_streams.is_one(settings.dataset)
        return _plan_arrow_stream(settings) if is_arrow else _plan_webdataset(settings)
    leaves = sources.leaves(settings.dataset)
    if all(sources.is_image_folder(leaf) for leaf in leaves):
        return _plan_images(settings, course, leaves)
    if len(leaves) == 1 and annotated_datasets.is_one(leaves[0]):
        return _plan_annotated(settings, leaves[0])
    if len(leaves) == 1 and type(leaves[0]) is Dataset:
        return _plan_dataset(settings, leaves[0])
    if len(leaves) == 1 and image_arrays.is_one(leaves[0]):
        return _plan_image_arrays(settings, leaves[0])
    if len(leaves) == 1 and arrow_images.is_one(leaves[0]) and leaves[0]._format_type == "custom":
        return _plan_arrow_images(settings, leaves[0])
    return _plan_arrays(settings)


def missed(plan: Plan) -> list[Stage]:
    """What keeps a loader from being native as `lower="require"` asks for; of a whole plan, nothing.

    Whose shards Feedline's client reads has that, and all that the engine does; order, taking tars apart and putting
    samples together are webdataset's in any case.
    """
    if not isinstance(plan, (PrefixPlan, Reason)):
        return []
    fetches = any(stage.name == "fetch" for stage in plan.stages)
    left = ("order", "read", "collate") if fetches else ("order",)
    return [stage for stage in plan.stages if not stage.runs.startswith(NATIVE) and stage.name not in left]


def _blocked(settings: Settings) -> str:
    """What keeps every part in Python, whatever the dataset is."""
    known = native_webdataset.is_pipeline(settings.dataset) or arrow_streams.is_one(settings.dataset)
    if settings.iterable and not known:
        return "an IterableDataset gives its samples itself"
    init_fn = settings.worker_init_fn
    if settings.num_workers and init_fn is not None and not known_init_functions.only_seeds(init_fn):
        return "worker_init_fn may change the dataset of each worker"
    return ""


def _collating(settings: Settings) -> str:
    """Why the engine cannot do what collate_fn does; empty where it can."""
    collation = _collation(settings)
    if isinstance(collation, str):
        return collation
    return "" if isinstance(collation, known_collate.Stock) else "collate_fn is not torch's default_collate"


def _collation(settings: Settings) -> known_collate.Collation | str:
    """What collate_fn makes of images and labels; or why the engine cannot do that."""
    if not settings.auto_collation:
        return "batch_size=None: there is no batch"
    if dict(torch_collate.default_collate_fn_map) != _STOCK_COLLATE:
        return "default_collate_fn_map was changed"
    return known_collate.collation_of(settings.collate_fn)


# -- images


def _plan_images(settings: Settings, course: Course, leaves: list[Any]) -> Plan:
    for leaf in leaves:
        why = sources.why_not_readable(leaf)
        if why:
            return _reason(settings, why)
    foreign = _foreign(leaves) or _missed(course)
    if foreign:
        return _reason(settings, foreign)
    crops = known_views.crops_of(leaves[0].transform) if len(leaves) == 1 else None
    if isinstance(crops, known_views.Crops):
        return _crops_of_images(settings, leaves[0], crops)
    files = sources.given_files(leaves[0])
    chains = [transforms.chain_of(leaf.transform, files.dataset) for leaf in leaves]
    if crops:
        chains = [dataclasses.replace(chain, why=crops) for chain in chains]
    collation = _collation(settings)
    collating = collation if isinstance(collation, str) else ""
    labels = any(leaf.target_transform is not None for leaf in leaves)
    same = all(chain.dataset.operations == chains[0].dataset.operations for chain in chains)
    if not same and not any(chain.rest for chain in chains):
        collating = collating or "the joined datasets have different transforms"
    if not any(chain.rest for chain in chains) and not collating and not labels:
        assert not isinstance(collation, str)
        whole = _whole_images(settings, chains[0], files, collation)
        if whole is not None:
            return whole
    return _prefix_images(settings, leaves, chains, collating)


def _whole_images(
    settings: Settings, chain: transforms.Chain, files: Any, collation: known_collate.Collation
) -> Plan | None:
    if chain.flows == transforms.PIL or not transforms.has_fixed_size(chain.dataset):
        return None
    if chain.crops == transforms.TUPLE:
        return None  # default_collate makes a list of them
    if collation.takes and chain.flows not in collation.takes:
        return None
    follow_pillow()
    threads, native = _threads(settings)
    unique = is_unique(settings.index_sampler)
    stages = [_order(settings), Stage("read", type(settings.dataset).__qualname__, native, "sample by sample")]
    stages += _known_stages(chain, native, _drawn_by(unique))
    stages.append(Stage("collate", collation.name, native, collation.why))
    return ImagePlan(stages, chain.dataset, files, threads, unique, settings.adapts, collation)


def _threads(settings: Settings) -> tuple[int, str]:
    """How many work at most, and in words."""
    threads = limits.share_of_cpus() if settings.adapts else max(1, settings.num_workers)
    return threads, f"{NATIVE}, {'up to ' if settings.adapts else ''}{threads} thread{'s' if threads > 1 else ''}"


def _drawn_by(unique: bool) -> str:
    key = "(seed, epoch, sample)" if unique else "(seed, epoch, sample, place in the order)"
    return f"the engine's own random numbers, by {key}"


def _prefix_images(settings: Settings, leaves: list[Any], chains: list[transforms.Chain], collating: str) -> Plan:
    files = sources.given_files(leaves[0])
    chain = transforms.front_of(sources.transform_of(leaves[0]), files.dataset)
    where = _where(settings)
    runs = transforms.runs_of(chain, files.dataset)
    if len(leaves) > 1 or not (chain.known or any(run.chain for run in runs)):
        return _reason(settings, _why_no_prefix(leaves, chains, collating))
    follow_pillow()
    native = f"{NATIVE}, within each worker" if settings.num_workers else f"{NATIVE}, in this process"
    stages = [_order(settings), _read_stage(settings, chain, native)]
    stages += _known_stages(chain, native, _DRAWN_IN_WORKERS)
    stages += _rest_stages(runs, where, native)
    if sources.target_transform_of(leaves[0]) is not None:
        stages.append(Stage("target", "target_transform", where, "yours"))
    stages.append(_collate_stage(settings, collating or _why_no_batch(chains[0])))
    known = (*chain.known, *(name for run in runs if run.chain for name in run.chain.known))
    return PrefixPlan(stages, known, NativePrefix)


def _plan_annotated(settings: Settings, leaf: Any) -> Plan:
    why = sources.why_not_readable(leaf)
    if why:
        return _reason(settings, why)
    chain = transforms.chain_of(sources.transform_of(leaf), sources.given_files(leaf).dataset)
    return _prefix_images(settings, [leaf], [chain], "targets are the dataset's own")


def _crops_of_images(settings: Settings, leaf: Any, crops: known_views.Crops) -> Plan:
    """Several crops of each image, in the layout of the class that makes them, which is collated in Python."""
    follow_pillow()
    where = _where(settings)
    native = f"{NATIVE}, within each worker" if settings.num_workers else f"{NATIVE}, in this process"
    stages = [_order(settings), Stage("read", type(settings.dataset).__qualname__, native, "once for all views")]
    before = crops.before(sources.given_files(leaf).dataset)
    if before.known:
        shared = "once for all views" + (f"; {_DRAWN_IN_WORKERS}" if before.random else "")
        stages.append(Stage("transform", ", ".join(before.known), native, shared))
    for name, chain in zip(crops.known, crops.chains, strict=True):
        stages.append(Stage("transform", name, native, _DRAWN_IN_WORKERS if chain.random else "as on PIL images"))
    if leaf.target_transform is not None:
        stages.append(Stage("target", "target_transform", where, "yours"))
    stages.append(_collate_stage(settings, "several crops of an image"))
    return PrefixPlan(stages, crops.known, NativeCrops)


def _why_no_batch(chain: transforms.Chain) -> str:
    whole = not chain.rest and chain.flows != transforms.PIL
    if whole and chain.crops:
        return "several crops of an image"
    return "images have no fixed size" if whole else "follows what runs in Python"


def _why_no_prefix(leaves: list[Any], chains: list[transforms.Chain], collating: str) -> str:
    if len(leaves) == 1:
        return chains[0].why or collating or "images have no fixed size"
    return collating or chains[0].why or "joined datasets"


def _read_stage(settings: Settings, chain: transforms.Chain, native: str) -> Stage:
    what = type(settings.dataset).__qualname__
    if chain.known:
        return Stage("read", what, native, "sample by sample")
    return Stage("read", what, _where(settings), "what follows is not known")


def _rest_stages(runs: list[transforms.Run], where: str, native: str, of: str = "") -> list[Stage]:
    """Of the transforms from the first one on that is not known."""
    stages, before = [], ""
    for run in runs:
        if run.chain is None:
            before = transforms.name_of(run.transforms[0])
            stages.append(Stage("transform", of + before, where, run.why))
            continue
        given = f"where {before} gives an RGB or L image of Pillow's"
        drawn = f"{given}; {_DRAWN_IN_WORKERS}"
        for name, draws in zip(run.chain.known, run.chain.drawn, strict=True):
            stages.append(Stage("transform", of + name, native, drawn if draws else given))
    return stages


def _known_stages(chain: transforms.Chain, native: str, drawn: str) -> list[Stage]:
    return [
        Stage("transform", name, native, drawn if draws else "as on PIL images")
        for name, draws in zip(chain.known, chain.drawn, strict=True)
    ]


def _foreign(leaves: list[Any]) -> str:
    looked = [str(path).lower() for leaf in leaves for path, _ in sources.samples_of(leaf)[:_LOOKED_AT]]
    foreign = [path for path in looked if not path.endswith(_DECODED)]
    if len(foreign) <= _MOST_FOREIGN * len(looked):
        return ""
    return f"{len(foreign)} of the first {len(looked)} files are not JPEG, PNG or WebP by name"


def _missed(course: Course) -> str:
    """Whether too many files turned out, in the epochs before, to be none that the engine reads."""
    misses, rows = course.native_misses, course.native_rows
    if misses < _LOOKED_AT or misses <= _MOST_FOREIGN * rows:
        return ""
    return f"{misses} of {rows} files so far were not read natively"


def follow_pillow() -> None:
    """Resizing like the Pillow that is here, which the samples that stay in Python come from."""
    pillow = sys.modules.get("PIL")
    version = getattr(pillow, "__version__", "13").split(".")[0]
    major = min(13, max(10, int(version))) if version.isdigit() else 13
    if major != 13:
        from ..data.images import follow_pillow as follow

        follow(major)


# -- images in memory


def _plan_image_arrays(settings: Settings, leaf: Any) -> Plan:
    try:
        arrays = image_arrays.of(leaf)
    except ValueError as error:
        return _reason(settings, str(error))
    chain = transforms.chain_of(leaf.transform, arrays.dataset, arrays.channels)
    collation = _collation(settings)
    if isinstance(collation, str):
        return _reason(settings, collation)
    if leaf.target_transform is not None:
        return _reason(settings, "target_transform is yours")
    whole = None if chain.rest else _whole_images(settings, chain, None, collation)
    if isinstance(whole, ImagePlan):
        return dataclasses.replace(whole, arrays=arrays)
    return _reason(settings, chain.why or "its samples are not tensors of one size")


# -- images of Arrow tables


def _plan_arrow_images(settings: Settings, leaf: Any) -> Plan:
    try:
        table = arrow_images.of(leaf)
    except ValueError as error:
        return _reason(settings, str(error))
    collation, why = _column_collation(settings)
    chain = transforms.chain_of(table.function.transform, table.dataset, table.channels)
    can_be_whole = not chain.rest and chain.flows != transforms.PIL and not chain.crops
    if collation is not None and can_be_whole and transforms.has_fixed_size(chain.dataset):
        return _whole_arrow_images(settings, table, collation)
    return _prefix_arrow_images(settings, table, why or _why_no_batch(chain))


def _column_collation(settings: Settings) -> tuple[Any, str]:
    """What collate_fn makes of samples that are dicts; or None, and why the engine cannot do that."""
    if not settings.auto_collation:
        return None, "batch_size=None: there is no batch"
    if dict(torch_collate.default_collate_fn_map) != _STOCK_COLLATE:
        return None, "default_collate_fn_map was changed"
    collation = known_batch_functions.collation_of(settings.collate_fn)
    return collation, "" if collation else "collate_fn is not torch's default_collate"


def _whole_arrow_images(settings: Settings, table: arrow_images.ImageTable, collation: Any) -> Plan:
    follow_pillow()
    threads, native = _threads(settings)
    unique = is_unique(settings.index_sampler)
    files = table.files()
    chain = transforms.chain_of(table.function.transform, files.dataset, table.channels)
    stages = [_order(settings), Stage("read", f"column {table.function.image!r}", native, "where Arrow has it")]
    stages += _known_stages(chain, native, _drawn_by(unique))
    stages.append(Stage("collate", collation.name, native, "rows are written where they stay; other columns by Python"))
    return ImagePlan(stages, chain.dataset, files, threads, unique, settings.adapts, collation, table)


def _prefix_arrow_images(settings: Settings, table: arrow_images.ImageTable, why: str) -> Plan:
    chain = transforms.front_of(table.function.transform, table.dataset, table.channels)
    runs = transforms.runs_of(chain, table.dataset)
    if not (chain.known or any(run.chain for run in runs)):
        return _reason(settings, chain.why or why)
    follow_pillow()
    where = _where(settings)
    native = f"{NATIVE}, within each worker" if settings.num_workers else f"{NATIVE}, in this process"
    reads = native if chain.known else where
    stages = [_order(settings), Stage("read", f"column {table.function.image!r}", reads, "sample by sample")]
    stages += _known_stages(chain, native, _DRAWN_IN_WORKERS)
    stages += _rest_stages(runs, where, native)
    stages.append(_collate_stage(settings, why))
    known = (*chain.known, *(name for run in runs if run.chain for name in run.chain.known))
    return PrefixPlan(stages, known, ArrowPrefix)


def _plan_arrow_stream(settings: Settings) -> Plan:
    found = arrow_streams.find(settings.dataset)
    if isinstance(found, str):
        return _reason(settings, found)
    chain = found.chain()
    runs = transforms.runs_of(chain, sources.GivenFiles("images").dataset)
    if not chain.known:
        return _reason(settings, chain.why)
    follow_pillow()
    where = _where(settings)
    native = f"{NATIVE}, within each worker" if settings.num_workers else f"{NATIVE}, in this process"
    stages = [
        Stage("order", type(settings.dataset).__qualname__, where, "shards, splits and shuffles are datasets'"),
        Stage("read", "tables", where, "datasets', with images left encoded"),
        Stage("decode", f"column {found.function.image!r}", native, "where Arrow has it; what is no image by datasets"),
    ]
    stages += _known_stages(chain, native, _DRAWN_IN_WORKERS)
    stages += _rest_stages(runs, where, native)
    stages.append(_collate_stage(settings, "samples are made one by one"))
    known = (*chain.known, *(name for run in runs if run.chain for name in run.chain.known))
    return PrefixPlan(stages, known, ArrowStream)


# -- our own datasets


def _plan_dataset(settings: Settings, dataset: Dataset) -> Plan:
    why = _collating(settings) or _why_not_batches(dataset)
    if why:
        return _reason(settings, why)
    threads, native = _threads(settings)
    unique = is_unique(settings.index_sampler)
    what = type(settings.dataset).__qualname__
    if settings.dataset is not dataset:
        what += " of Dataset"
    stages = [_order(settings), Stage("read", f"{what} ({dataset.format})", native, "sample by sample")]
    for operation in dataset.operations:
        why = _drawn_by(unique) if is_random(operation) else "as dataset.loader() does"
        where = f"Python, by the engine's {native.partition(', ')[2]}" if operation.startswith("map(") else native
        stages.append(Stage("transform", operation, where, why))
    stages.append(Stage("collate", "default_collate", native, "rows are written where they stay"))
    return ImagePlan(stages, dataset, None, threads, unique, settings.adapts)


def _why_not_batches(dataset: Dataset) -> str:
    """Why the engine's batches are not what default_collate makes of its samples; empty where they are."""
    try:
        schema = dataset.schema
    except ConfigError as error:
        return str(error)
    if any(spec.shape[:1] == (-1,) for spec in schema.values()):
        return "samples have different lengths: dataset.loader() pads them, or a collate_fn of yours does"
    if any(not spec.shape and spec.dtype == "uint64" for spec in schema.values()):
        return "numbers of uint64 may be too large for the int64 that default_collate makes of them"
    return ""


# -- webdataset


def _plan_webdataset(settings: Settings) -> Plan:
    every = settings.lower == "require"
    asked = remote_shards.check(settings.dataset.pipeline, every)
    wrap = functools.partial(native_webdataset.wrap, every=every)
    found = native_webdataset.find(settings.dataset)
    where = _where(settings)
    native = f"{NATIVE}, within each worker" if settings.num_workers else f"{NATIVE}, in this process"
    order = Stage("order", type(settings.dataset).__qualname__, where, "shards, splits and shuffles are webdataset's")
    reads = Stage("read", "tar files", where, "webdataset's, encoded images and other fields")
    if asked:
        what = f"bytes of {asked} shards"
        asks = 'lower="require" asks for it' if every else f"their URLs ask for with {remote_shards.PREFIX!r}"
        fetch = Stage("fetch", what, native, f"by Feedline's client, as {asks}")
    if isinstance(found, str):
        reason = _reason(settings, found)
        if not asked:
            return reason
        decoded = [] if found == native_webdataset.NO_IMAGES else [Stage("decode", "images", where, found)]
        rest = [dataclasses.replace(reads, why=found), *decoded, *reason.stages[2:]]
        return PrefixPlan([order, fetch, *rest], (), wrap)
    follow_pillow()
    stages = [order, fetch, reads] if asked else [order, reads]
    stages += [_decode_stage(handler, found, native, where) for handler in found.handlers()]
    for field in found.fields:
        stages += _field_stages(field, len(found.fields) > 1, native, where)
    stages.append(_collate_stage(settings, "follows what runs in Python"))
    known = tuple(name for field in found.fields for name in field.chain.known)
    return PrefixPlan(stages, known, wrap)


def _decode_stage(handler: Any, found: native_webdataset.Found, native: str, where: str) -> Stage:
    kind = encoded_fields.kind_of(handler)
    spec = getattr(handler, "imagespec", None)
    if kind == encoded_fields.ARRAYS:
        return Stage("decode", f"JPEG, PNG, WebP ({spec})", native, "arrays as webdataset makes them")
    if kind == encoded_fields.PILLOW and found.late is not None:
        return Stage(
            "decode", f"JPEG, PNG, WebP ({spec})", native, "where a known transform is applied; the others by Pillow"
        )
    if kind == encoded_fields.PILLOW:
        return Stage("decode", f"images ({spec})", where, found.why)
    if spec is not None:
        return Stage("decode", f"images ({spec})", where, "the engine decodes to RGB and L")
    return Stage("decode", transforms.name_of(handler), where, "a handler of your own")


def _field_stages(field: native_webdataset.Field, one_of_many: bool, native: str, where: str) -> list[Stage]:
    of = f"{field.name}: " if one_of_many else ""
    chain = field.chain
    if not chain.known:
        return [Stage("transform", of + transforms.name_of(field.function), where, chain.why)]
    drawn = "the engine's own random numbers, by one of torch's for each " + ("image" if of else "sample")
    stages = [dataclasses.replace(stage, what=of + stage.what) for stage in _known_stages(chain, native, drawn)]
    runs = transforms.runs_of(chain, sources.GivenFiles("images").dataset)
    return stages + _rest_stages(runs, where, native, of)


# -- arrays


def _plan_arrays(settings: Settings) -> Plan:
    from . import native_arrays

    table = native_arrays.table_of(settings.dataset)
    if isinstance(table, str):
        return _reason(settings, table)
    collating = _collating(settings)
    if collating:
        return _reason(settings, collating)
    threads = native_arrays.thread_count(table, settings)
    where = f"{NATIVE}, {threads} threads" if threads else f"{NATIVE}, in this thread"
    why = "one gather for each array" + ("" if threads or not settings.num_workers else "; a worker would take longer")
    stages = [_order(settings), Stage("read", table.name, where, why)]
    stages.append(Stage("collate", "default_collate", where, "the gather makes the batch"))
    return ArrayPlan(stages, table, threads)


# -- words


def _reason(settings: Settings, why: str) -> Reason:
    where = _where(settings)
    stages = [_order(settings), Stage("read", type(settings.dataset).__qualname__, where, why)]
    leaves = sources.leaves(settings.dataset)
    if len(leaves) == 1 and type(leaves[0]) is Dataset:
        for operation in leaves[0].operations:
            drawn = "by a number of torch's for each sample" if is_random(operation) else "comes after"
            stages.append(Stage("transform", operation, where, drawn))
    transform = getattr(settings.dataset, "transform", None)
    if transform is not None:
        stages.append(Stage("transform", type(transform).__qualname__, where, "comes after"))
    stages.append(_collate_stage(settings, "comes after"))
    return Reason(stages)


def _order(settings: Settings) -> Stage:
    sampler = settings.index_sampler
    name = type(sampler).__name__
    if type(sampler) is BatchSampler:
        name += f"({type(sampler.sampler).__name__})"
    return Stage("order", name, "Python, in this process", "samplers are yours")


def _collate_stage(settings: Settings, why: str) -> Stage:
    collate = getattr(settings.collate_fn, "__qualname__", type(settings.collate_fn).__qualname__)
    return Stage("collate", collate, _where(settings), why)


def _where(settings: Settings) -> str:
    if settings.num_workers == 0:
        return "Python, in this process"
    kind = "threads" if settings.in_threads else "processes"
    return f"Python, in {settings.num_workers} worker {kind}"


def plain_tensor(value: Any) -> bool:
    """A dense CPU tensor of exactly that type, whose rows carry no gradient."""
    return (
        type(value) is torch.Tensor
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and not value.requires_grad
        and not value.is_quantized
    )
