# SPDX-License-Identifier: Apache-2.0
"""Lowers loaders over users' own dataset classes for image files, also concatenated with each other and with image
folders.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from ..native.joined import JoinedPrefix
from ..native.own_classes import OwnClassIterator, OwnClassPrefix, same_chain
from ..native.plans import NATIVE, ImagePlan, Plan, PrefixPlan, Stage
from ..options.settings import Settings
from ..state.loader_progress import LoaderProgress
from .collating import collation_of
from .datasets import sources
from .functions import collate_functions
from .images import (
    LOOKED_AT,
    follow_pillow,
    missed,
    unread_formats,
    whole_images,
    why_no_batch,
)
from .own_code import own_classes
from .own_code.sample_code import ImageCode, SampleCode
from .own_code.sample_values import Refused
from .sample_check import why_unequal
from .stages import DRAWN_IN_WORKERS, collate_stage, known_stages, order_stage, python_place, reason_for, rest_stages
from .transforms import transforms
from .unknown_datasets import why_unknown

Part = tuple[Any, SampleCode]  # a dataset and its code
_LOOKS_UP = "the dataset's __getitem__ only opens an image, transforms it and looks up other values"
_LOOKS_UP_SEVERAL = "the dataset's __getitem__ only opens images, transforms each separately and looks up other values"
_OPENS = "your own code reads the images that it converts to arrays"
_MOST_PARTS = 64  # concatenated datasets: analysing and comparing one takes up to 20 ms
_OTHER_TRANSFORMS = (
    "the concatenated datasets have different transforms; if all have the same transforms, batches are also collated "
    "natively"
)
_OTHER_FIELDS = "the concatenated datasets return different fields: return the same items in the same order from each"


def plan_own_classes(settings: Settings, progress: LoaderProgress, leaves: list[Any]) -> Plan:
    """`leaves`: the different datasets that the loader's dataset consists of: one of a user's class, or several, which
    may be image folders.
    """
    own = sum(map(own_classes.is_one, leaves))
    if own > _MOST_PARTS:
        why = f"{own} datasets of your own classes are concatenated, more than {_MOST_PARTS}: create one with all paths"
        return reason_for(settings, why)
    parts: list[Part] = []
    for leaf in leaves:
        if not own_classes.is_one(leaf) and not sources.is_image_folder(leaf):
            why = f"{type(leaf).__qualname__} is concatenated with datasets of image files: use a loader for each"
            return reason_for(settings, why)
        try:
            code = own_classes.code_of(leaf)
            why = own_classes.why_not_apart(code)
        except Refused as refused:
            why = refused.why
        if why:
            return reason_for(settings, why_unknown(leaf, why) if own_classes.is_one(leaf) else why, leaf)
        parts.append((leaf, code))
    why = (
        _why_unread(settings, parts)
        or missed(progress)
        or _why_unequal(settings, progress, [part for part in parts if own_classes.is_one(part[0])])
    )
    if why:
        return reason_for(settings, why)
    codes = [code for _, code in parts]
    files = [sources.GivenFiles("files") for _ in codes[0].images]
    collation = collation_of(settings)
    collating = collation if isinstance(collation, str) else _why_not_one_batch(codes)
    read_why = "sample by sample" if not own else _LOOKS_UP if len(files) == 1 else _LOOKS_UP_SEVERAL
    if not collating and not any(code.is_slow for code in codes):
        assert not isinstance(collation, str)
        whole = _whole(settings, codes[0], files, collation, read_why)
        if whole is not None:
            return whole
    return _prefix(settings, parts, collating, read_why)


def _chain(image: ImageCode, files: sources.GivenFiles) -> transforms.Chain:
    return own_classes.chain(image, own_classes.decoded(files, image))


def _why_not_one_batch(codes: list[SampleCode]) -> str:
    """Returns why samples of different parts do not fit in a batch that the engine makes."""
    if any(code.form != codes[0].form for code in codes):
        return _OTHER_FIELDS
    files = sources.GivenFiles("files")
    first = [_chain(image, files) for image in codes[0].images]
    for code in codes[1:]:
        for image, chain in zip(code.images, first, strict=True):
            if not same_chain(_chain(image, files), chain):
                return _OTHER_TRANSFORMS
    return ""


def _whole(
    settings: Settings,
    code: SampleCode,
    files: list[sources.GivenFiles],
    collation: collate_functions.Collation,
    why: str,
) -> ImagePlan | None:
    if not isinstance(collation, collate_functions.Stock) and not code.is_pair:
        return None
    plans: list[ImagePlan] = []
    for image, given in zip(code.images, files, strict=True):
        chain = _chain(image, given)
        plan = None if chain.rest else whole_images(settings, chain, given, collation)
        if not isinstance(plan, ImagePlan):
            return None
        plans.append(plan)
    order, read, *_, collate = plans[0].stages
    stages = [order, dataclasses.replace(read, why=why)]
    for image, plan in zip(code.images, plans, strict=True):
        listed = [stage for stage in plan.stages if stage.name == "transform"]
        stages += _named(listed, _name_of_image(code, image) if len(plans) > 1 else "")
    return dataclasses.replace(plans[0], stages=[*stages, collate], iterator=OwnClassIterator, more=tuple(plans[1:]))


def _name_of_image(code: SampleCode, image: ImageCode) -> str:
    return str(code.keys[image.at]) if code.kind is dict else f"item {image.at}"


def _named(stages: list[Stage], name: str) -> list[Stage]:
    return [dataclasses.replace(stage, what=f"{name}: {stage.what}") for stage in stages] if name else stages


def _prefix(settings: Settings, parts: list[Part], collating: str, why: str) -> Plan:
    where = python_place(settings)
    native = f"{NATIVE}, within each worker" if settings.num_workers else f"{NATIVE}, in this process"
    lists: dict[str, list[Stage]] = {}  # by the class of the parts
    known: list[str] = []
    fronts, wholes = [], []
    for leaf, code in parts:
        stages = []
        for image in code.images:
            files = sources.GivenFiles("files")
            dataset = own_classes.decoded(files, image)
            chain = own_classes.front(image, dataset)
            runs = transforms.runs_of(chain, dataset)
            fronts.append(chain)
            wholes.append(_chain(image, files))
            known += [*chain.known, *(name for run in runs if run.chain for name in run.chain.known)]
            listed = known_stages(chain, native, DRAWN_IN_WORKERS) + rest_stages(runs, where, native)
            stages += _named(listed, _name_of_image(code, image) if len(code.images) > 1 else "")
        if stages not in lists.values():
            name = type(leaf).__qualname__
            lists[name if name not in lists else f"{name} {len(lists) + 1}"] = stages
    whole = next((chain for chain in wholes if chain.rest), wholes[0])
    if not known:
        return reason_for(settings, whole.why or collating or "images have no fixed size")
    follow_pillow()
    read = native if any(chain.known for chain in fronts) else where
    stages = [order_stage(settings), Stage("read", type(settings.dataset).__qualname__, read, why)]
    for name, listed in lists.items():
        stages += _named(listed, name if len(lists) > 1 else "")
    codes = [code for _, code in parts]
    if any(code.called for code in codes):
        stages.append(Stage("target", "target_transform", where, "yours"))
    if any(code.opens for code in codes):
        stages.append(Stage("array", "np.array", where, _OPENS))
    stages.append(collate_stage(settings, collating or why_no_batch(whole)))
    return PrefixPlan(stages, tuple(known), OwnClassPrefix if len(parts) == 1 else JoinedPrefix)


def _why_unread(settings: Settings, parts: list[Part]) -> str:
    """Returns a reason if the engine does not decode the formats of too many files; otherwise an empty string."""
    paths: list[str] = []
    codes = {id(leaf): code for leaf, code in parts}
    if any(code.is_slow for code in codes.values()):
        return ""
    with contextlib.suppress(Exception):  # the loader raises it when it reads the sample
        count = len(settings.dataset)
        step = 1 if len(parts) == 1 else max(1, count // LOOKED_AT)  # files of all parts
        for index in range(0, min(count, step * LOOKED_AT), step):
            leaf, inner = sources.locate(settings.dataset, index)
            paths += map(str, codes[id(leaf)].row(inner)[0])
    return unread_formats(paths) if len(parts) == 1 else unread_formats(paths, "")


def _why_unequal(settings: Settings, progress: LoaderProgress, parts: list[Part]) -> str:
    """Returns the result of why_unequal(), which is computed once for a loader and its transforms."""
    key: list[Any] = [id(settings.dataset)]
    for leaf, code in parts:
        steps = [(step.slot, id(step.transform) if step.slot else 0) for image in code.images for step in image.steps]
        # steps without a slot are created for each sample
        key.append((id(leaf), code.form, tuple(image.mode for image in code.images), tuple(steps)))
    if progress.compared is None or progress.compared[0] != key:
        progress.compared = key, why_unequal(settings.dataset, parts)
    return progress.compared[1]
