# SPDX-License-Identifier: Apache-2.0
"""Lowers loaders over Hugging Face's datasets: images in Arrow tables, and streams of such tables."""

from __future__ import annotations

from typing import Any

from ..iteration.orders import is_unique
from ..native.arrow_images_iterator import NativeArrowIterator
from ..native.arrow_prefix import ArrowPrefix
from ..native.plans import NATIVE, ImagePlan, Plan, PrefixPlan, Stage
from ..options.settings import Settings
from . import arrow_streams
from .arrow_streams import ArrowStream
from .collating import column_collation_of
from .datasets import arrow_images, sources
from .images import follow_pillow, why_no_batch
from .stages import (
    DRAWN_IN_WORKERS,
    collate_stage,
    drawn_by,
    known_stages,
    order_stage,
    python_place,
    reason_for,
    rest_stages,
    threads_of,
)
from .transforms import transforms


def plan_arrow_images(settings: Settings, leaf: Any) -> Plan:
    try:
        table = arrow_images.of(leaf)
    except ValueError as error:
        return reason_for(settings, str(error))
    collation, why = column_collation_of(settings)
    chain = transforms.chain_of(table.function.transform, table.dataset, table.channels)
    can_be_whole = not chain.rest and chain.flows != transforms.PIL and not chain.crops
    if collation is not None and can_be_whole and transforms.has_fixed_size(chain.dataset):
        return _whole_arrow_images(settings, table, collation)
    return _prefix_arrow_images(settings, table, why or why_no_batch(chain))


def _whole_arrow_images(settings: Settings, table: arrow_images.ImageTable, collation: Any) -> Plan:
    follow_pillow()
    threads, native = threads_of(settings)
    unique = is_unique(settings.index_sampler)
    files = table.files()
    chain = transforms.chain_of(table.function.transform, files.dataset, table.channels)
    stages = [
        order_stage(settings),
        Stage("read", f"column {table.function.image!r}", native, "directly from Arrow's memory"),
    ]
    stages += known_stages(chain, native, drawn_by(unique))
    stages.append(
        Stage(
            "collate",
            collation.name,
            native,
            "images are written directly into the batch; Python collates the other columns",
        )
    )
    dataset = chain.dataset
    return ImagePlan(stages, NativeArrowIterator, dataset, files, threads, unique, settings.adapts, collation, table)


def _prefix_arrow_images(settings: Settings, table: arrow_images.ImageTable, why: str) -> Plan:
    chain = transforms.front_of(table.function.transform, table.dataset, table.channels)
    runs = transforms.runs_of(chain, table.dataset)
    if not (chain.known or any(run.chain for run in runs)):
        return reason_for(settings, chain.why or why)
    follow_pillow()
    where = python_place(settings)
    native = f"{NATIVE}, within each worker" if settings.num_workers else f"{NATIVE}, in this process"
    reads = native if chain.known else where
    stages = [order_stage(settings), Stage("read", f"column {table.function.image!r}", reads, "sample by sample")]
    stages += known_stages(chain, native, DRAWN_IN_WORKERS)
    stages += rest_stages(runs, where, native)
    stages.append(collate_stage(settings, why))
    known = (*chain.known, *(name for run in runs if run.chain for name in run.chain.known))
    return PrefixPlan(stages, known, ArrowPrefix)


def plan_arrow_stream(settings: Settings) -> Plan:
    found = arrow_streams.find(settings.dataset)
    if isinstance(found, str):
        return reason_for(settings, found)
    chain = found.chain()
    runs = transforms.runs_of(chain, sources.GivenFiles("images").dataset)
    if not chain.known:
        return reason_for(settings, chain.why)
    follow_pillow()
    where = python_place(settings)
    native = f"{NATIVE}, within each worker" if settings.num_workers else f"{NATIVE}, in this process"
    stages = [
        Stage(
            "order",
            type(settings.dataset).__qualname__,
            where,
            "the datasets library determines shards, splits and shuffling",
        ),
        Stage("read", "tables", where, "the datasets library reads the rows; images stay encoded"),
        Stage(
            "decode",
            f"column {found.function.image!r}",
            native,
            "directly from Arrow's memory; the datasets library decodes the other columns",
        ),
    ]
    stages += known_stages(chain, native, DRAWN_IN_WORKERS)
    stages += rest_stages(runs, where, native)
    stages.append(collate_stage(settings, "samples are created one by one"))
    known = (*chain.known, *(name for run in runs if run.chain for name in run.chain.known))
    return PrefixPlan(stages, known, ArrowStream)
