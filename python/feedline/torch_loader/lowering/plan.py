# SPDX-License-Identifier: Apache-2.0
"""Decides which parts of a loader run in the engine's native threads, and why the other parts do not.

Everything is matched by exact type: a subclass may behave differently, so it stays in Python. Three outcomes:

    whole    reading, transforming and collating run natively, in this process (ImagePlan, ArrayPlan)
    prefix   workers read and run the known transforms at the start natively, and continue in Python (PrefixPlan)
    Reason   nothing runs natively
"""

from __future__ import annotations

from ...data.dataset import Dataset
from ...data.draws import is_random
from ...errors import ConfigError
from ..iteration import seeding_functions
from ..iteration.orders import is_unique
from ..native.arrays import ArrayIterator
from ..native.dataset_iterator import NativeDatasetIterator
from ..native.plans import NATIVE, ArrayPlan, ImagePlan, Plan, PrefixPlan, Reason, Stage
from ..options.settings import Settings
from ..state.loader_progress import LoaderProgress
from . import arrow_streams, webdataset_pipelines
from .arrow import plan_arrow_images, plan_arrow_stream
from .collating import why_no_collating
from .datasets import annotated_datasets, arrow_images, image_arrays, remote_shards, sources
from .images import plan_annotated, plan_image_arrays, plan_images
from .own_classes import plan_own_classes
from .own_code import own_classes
from .stages import drawn_by, order_stage, reason_for, threads_of
from .tables import table_of, thread_count
from .unknown_datasets import STREAM
from .webdataset import plan_webdataset


def plan_lowering(settings: Settings, progress: LoaderProgress) -> Plan:
    """Returns the plan for a loader with `settings`, given the results of previous epochs."""
    blocked = 'lower="never"' if settings.lower == "never" else _blocked(settings)
    if blocked:
        if settings.iterable and webdataset_pipelines.is_pipeline(settings.dataset):
            remote_shards.refuse(settings.dataset.pipeline, blocked, settings.lower == "require")
        return reason_for(settings, blocked)
    if settings.iterable:
        is_arrow = arrow_streams.is_one(settings.dataset)
        return plan_arrow_stream(settings) if is_arrow else plan_webdataset(settings)
    leaves = sources.leaves(settings.dataset)
    distinct = sources.distinct_leaves(settings.dataset)
    if len(distinct) == 1 and sources.is_image_folder(leaves[0]):
        return plan_images(settings, progress, leaves[0])
    if len(leaves) == 1 and annotated_datasets.is_one(leaves[0]):
        return plan_annotated(settings, leaves[0])
    if len(leaves) == 1 and type(leaves[0]) is Dataset:
        return _plan_dataset(settings, leaves[0])
    if len(leaves) == 1 and image_arrays.is_one(leaves[0]):
        return plan_image_arrays(settings, leaves[0])
    if len(leaves) == 1 and arrow_images.is_one(leaves[0]) and leaves[0]._format_type == "custom":
        return plan_arrow_images(settings, leaves[0])
    if any(own_classes.is_one(leaf) or sources.is_image_folder(leaf) for leaf in leaves):
        return plan_own_classes(settings, progress, distinct)
    return _plan_arrays(settings)


def missed(plan: Plan) -> list[Stage]:
    """Returns the stages that prevent a loader from being native as required by `lower="require"`; empty if the whole
    plan is native.

    If Feedline's client reads the shards of a pipeline, the stages for order, tar reading and grouping do not count,
    because webdataset always performs them.
    """
    if not isinstance(plan, (PrefixPlan, Reason)):
        return []
    fetches = any(stage.name == "fetch" for stage in plan.stages)
    left = ("order", "read", "collate") if fetches else ("order",)
    return [stage for stage in plan.stages if not stage.runs.startswith(NATIVE) and stage.name not in left]


def _blocked(settings: Settings) -> str:
    """Returns why every part stays in Python regardless of the dataset, or an empty string if there is no such
    reason.
    """
    known = webdataset_pipelines.is_pipeline(settings.dataset) or arrow_streams.is_one(settings.dataset)
    if settings.iterable and not known:
        return STREAM
    init_fn = settings.worker_init_fn
    if settings.num_workers and init_fn is not None and not seeding_functions.only_seeds(init_fn):
        return "worker_init_fn may change the dataset of each worker"
    return ""


def _plan_dataset(settings: Settings, dataset: Dataset) -> Plan:
    why = why_no_collating(settings) or _why_not_batches(dataset)
    if why:
        return reason_for(settings, why)
    threads, native = threads_of(settings)
    unique = is_unique(settings.index_sampler)
    what = type(settings.dataset).__qualname__
    if settings.dataset is not dataset:
        what += " of Dataset"
    stages = [order_stage(settings), Stage("read", f"{what} ({dataset.format})", native, "sample by sample")]
    for operation in dataset.operations:
        why = drawn_by(unique) if is_random(operation) else "as dataset.loader() does"
        where = f"Python, by the engine's {native.partition(', ')[2]}" if operation.startswith("map(") else native
        stages.append(Stage("transform", operation, where, why))
    stages.append(Stage("collate", "default_collate", native, "samples are written directly into the batch"))
    return ImagePlan(stages, NativeDatasetIterator, dataset, None, threads, unique, settings.adapts)


def _why_not_batches(dataset: Dataset) -> str:
    """Returns why the engine's batches differ from those of default_collate, or an empty string if they do not."""
    try:
        schema = dataset.schema
    except ConfigError as error:
        return str(error)
    if any(len(spec.shape) > 1 and -1 in spec.shape[1:] for spec in schema.values()):
        return "the chain has no fixed output size: add resize((height, width)), center_crop or a random crop"
    if any(spec.shape[:1] == (-1,) for spec in schema.values()):
        return "samples have different lengths: use dataset.loader(), which pads them, or your own collate_fn"
    if any(not spec.shape and spec.dtype == "uint64" for spec in schema.values()):
        return "uint64 numbers may be too large for int64, to which default_collate converts them"
    if any(spec.dtype == "bfloat16" for spec in schema.values()):
        return "bfloat16 samples become float32 NumPy arrays, so default_collate returns float32"
    return ""


def _plan_arrays(settings: Settings) -> Plan:
    table = table_of(settings.dataset)
    if isinstance(table, str):
        return reason_for(settings, table)
    collating = why_no_collating(settings)
    if collating:
        return reason_for(settings, collating)
    threads = thread_count(table, settings)
    where = f"{NATIVE}, {threads} threads" if threads else f"{NATIVE}, in this thread"
    why = "one gather per array" + ("" if threads or not settings.num_workers else "; a worker process would be slower")
    stages = [order_stage(settings), Stage("read", table.name, where, why)]
    stages.append(Stage("collate", "default_collate", where, "gathering the rows creates the batch"))
    return ArrayPlan(stages, ArrayIterator, table, threads)
