# SPDX-License-Identifier: Apache-2.0
"""Lowers loaders over image files or images in memory."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from ...data import image_formats
from ..iteration.orders import is_unique
from ..native.image_arrays_iterator import NativeImageArrayIterator
from ..native.images_iterator import NativeImageIterator
from ..native.plans import NATIVE, ImagePlan, Plan, PrefixPlan, Stage
from ..native.prefix import NativeCrops, NativePrefix
from ..options.settings import Settings
from ..state.loader_progress import LoaderProgress
from .collating import collation_of
from .datasets import image_arrays, sources
from .functions import collate_functions
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
from .transforms import dino_views, transforms

_DECODED = tuple(f".{extension}" for extension in image_formats.NATIVE_EXTENSIONS)
LOOKED_AT = 64  # files whose names are checked before the first one is read
_MOST_FOREIGN = 0.05  # share of files in formats that the engine does not decode, which Pillow reads in this process


def plan_images(settings: Settings, progress: LoaderProgress, leaf: Any) -> Plan:
    why = sources.why_not_readable(leaf)
    if why:
        return reason_for(settings, why)
    foreign = _foreign(leaf) or missed(progress)
    if foreign:
        return reason_for(settings, foreign)
    crops = dino_views.crops_of(leaf.transform)
    if isinstance(crops, dino_views.Crops):
        return _crops_of_images(settings, leaf, crops)
    files = sources.given_files(leaf)
    chain = transforms.chain_of(leaf.transform, files.dataset)
    if crops:
        chain = dataclasses.replace(chain, why=crops)
    collation = collation_of(settings)
    if not chain.rest and not isinstance(collation, str) and leaf.target_transform is None:
        whole = whole_images(settings, chain, files, collation)
        if whole is not None:
            return whole
    return _prefix_images(settings, leaf, chain, collation if isinstance(collation, str) else "")


def plan_annotated(settings: Settings, leaf: Any) -> Plan:
    why = sources.why_not_readable(leaf)
    if why:
        return reason_for(settings, why)
    chain = transforms.chain_of(sources.transform_of(leaf), sources.given_files(leaf).dataset)
    return _prefix_images(settings, leaf, chain, "the dataset creates the targets")


def plan_image_arrays(settings: Settings, leaf: Any) -> Plan:
    try:
        arrays = image_arrays.of(leaf)
    except ValueError as error:
        return reason_for(settings, str(error))
    chain = transforms.chain_of(leaf.transform, arrays.dataset, arrays.channels)
    collation = collation_of(settings)
    if isinstance(collation, str):
        return reason_for(settings, collation)
    if leaf.target_transform is not None:
        return reason_for(settings, "target_transform is user code")
    whole = None if chain.rest else whole_images(settings, chain, None, collation)
    if isinstance(whole, ImagePlan):
        return dataclasses.replace(whole, arrays=arrays, iterator=NativeImageArrayIterator)
    return reason_for(settings, chain.why or "the dataset's samples are not tensors of one size")


def whole_images(
    settings: Settings, chain: transforms.Chain, files: Any, collation: collate_functions.Collation
) -> Plan | None:
    if chain.flows == transforms.PIL or not transforms.has_fixed_size(chain.dataset):
        return None
    if chain.crops == transforms.TUPLE:
        return None  # default_collate makes a list of them
    if collation.takes and chain.flows not in collation.takes:
        return None
    follow_pillow()
    threads, native = threads_of(settings)
    unique = is_unique(settings.index_sampler)
    stages = [order_stage(settings), Stage("read", type(settings.dataset).__qualname__, native, "sample by sample")]
    stages += known_stages(chain, native, drawn_by(unique))
    stages.append(Stage("collate", collation.name, native, collation.why))
    return ImagePlan(stages, NativeImageIterator, chain.dataset, files, threads, unique, settings.adapts, collation)


def _prefix_images(settings: Settings, leaf: Any, whole: transforms.Chain, collating: str) -> Plan:
    files = sources.given_files(leaf)
    chain = transforms.front_of(sources.transform_of(leaf), files.dataset)
    where = python_place(settings)
    runs = transforms.runs_of(chain, files.dataset)
    if not (chain.known or any(run.chain for run in runs)):
        return reason_for(settings, whole.why or collating or "images have no fixed size")
    follow_pillow()
    native = f"{NATIVE}, within each worker" if settings.num_workers else f"{NATIVE}, in this process"
    stages = [order_stage(settings), _read_stage(settings, chain, native)]
    stages += known_stages(chain, native, DRAWN_IN_WORKERS)
    stages += rest_stages(runs, where, native)
    if sources.target_transform_of(leaf) is not None:
        stages.append(Stage("target", "target_transform", where, "yours"))
    stages.append(collate_stage(settings, collating or why_no_batch(whole)))
    known = (*chain.known, *(name for run in runs if run.chain for name in run.chain.known))
    return PrefixPlan(stages, known, NativePrefix)


def _crops_of_images(settings: Settings, leaf: Any, crops: dino_views.Crops) -> Plan:
    """Plans several crops per image. Python collates the crops in the layout of the class that creates them."""
    follow_pillow()
    where = python_place(settings)
    native = f"{NATIVE}, within each worker" if settings.num_workers else f"{NATIVE}, in this process"
    stages = [order_stage(settings), Stage("read", type(settings.dataset).__qualname__, native, "once for all views")]
    before = crops.before(sources.given_files(leaf).dataset)
    if before.known:
        shared = "once for all views" + (f"; {DRAWN_IN_WORKERS}" if before.random else "")
        stages.append(Stage("transform", ", ".join(before.known), native, shared))
    for name, chain in zip(crops.known, crops.chains, strict=True):
        stages.append(Stage("transform", name, native, DRAWN_IN_WORKERS if chain.random else "as on PIL images"))
    if leaf.target_transform is not None:
        stages.append(Stage("target", "target_transform", where, "yours"))
    stages.append(collate_stage(settings, "several crops of an image"))
    return PrefixPlan(stages, crops.known, NativeCrops)


def why_no_batch(chain: transforms.Chain) -> str:
    whole = not chain.rest and chain.flows != transforms.PIL
    if whole and chain.crops:
        return "several crops of an image"
    return "images have no fixed size" if whole else "a previous transform runs in Python"


def _read_stage(settings: Settings, chain: transforms.Chain, native: str) -> Stage:
    what = type(settings.dataset).__qualname__
    if chain.known:
        return Stage("read", what, native, "sample by sample")
    return Stage("read", what, python_place(settings), "the first transform is not supported")


def _foreign(leaf: Any) -> str:
    return unread_formats([str(path) for path, _ in sources.samples_of(leaf)[:LOOKED_AT]])


def unread_formats(paths: list[str], which: str = "the first ") -> str:
    """Returns a reason if the names of `which` files show that too many have formats that the engine does not decode;
    otherwise an empty string.
    """
    looked = [path.lower() for path in paths]
    foreign = [path for path in looked if not path.endswith(_DECODED)]
    if len(foreign) <= _MOST_FOREIGN * len(looked):
        return ""
    return (
        f"{len(foreign)} of {which}{len(looked)} files do not have the extension of a "
        f"{image_formats.native_titles()} file"
    )


def missed(progress: LoaderProgress) -> str:
    """Returns a reason if the engine failed to read too many files in previous epochs; otherwise an empty string."""
    misses, rows = progress.native_misses, progress.native_rows
    if misses < LOOKED_AT or misses <= _MOST_FOREIGN * rows:
        return ""
    return f"{misses} of {rows} files so far were not read natively"


def follow_pillow() -> None:
    """Makes the engine resize like the installed version of Pillow, because Pillow resizes the samples that stay in
    Python.
    """
    pillow = sys.modules.get("PIL")
    version = getattr(pillow, "__version__", "13").split(".")[0]
    major = min(13, max(10, int(version))) if version.isdigit() else 13
    if major != 13:
        from ...data.images import follow_pillow as follow

        follow(major)
