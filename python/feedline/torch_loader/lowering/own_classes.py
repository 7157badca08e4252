# SPDX-License-Identifier: Apache-2.0
"""Lowers loaders over users' own classes of image files."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from ..known import own_classes, sources, transforms
from ..known.known_collate import Stock
from ..known.sample_code import SampleCode, sample_code
from ..known.sample_values import Refused
from ..native.own_classes import OwnClassIterator, OwnClassPrefix
from ..native.plans import NATIVE, ImagePlan, Plan, PrefixPlan, Stage
from ..options.settings import Settings
from ..state.loader_progress import LoaderProgress
from .collating import collation_of
from .images import (
    LOOKED_AT,
    follow_pillow,
    missed,
    unread_formats,
    whole_images,
    why_no_batch,
)
from .sample_check import why_unequal
from .stages import DRAWN_IN_WORKERS, collate_stage, known_stages, order_stage, python_place, reason_for, rest_stages
from .unknown_datasets import why_unknown

_LOOKS_UP = "its __getitem__ only opens an image, transforms it and looks other values up"


def plan_own_class(settings: Settings, progress: LoaderProgress, leaf: Any) -> Plan:
    try:
        code = sample_code(leaf)
    except Refused as refused:
        return reason_for(settings, why_unknown(leaf, refused.why))
    why = (
        unread_formats(_first_paths(settings, code)) or missed(progress) or _why_unequal(settings, progress, leaf, code)
    )
    if why:
        return reason_for(settings, why)
    files = sources.GivenFiles("files")
    chain = own_classes.chain(code, own_classes.decoded(files, code))
    collation = collation_of(settings)
    collating = collation if isinstance(collation, str) else ""
    if not chain.rest and not collating and not code.called:
        assert not isinstance(collation, str)
        pair = (
            code.kind is tuple and code.at == 0 and len(code.row(0)[1]) == 1
            if not isinstance(collation, Stock)
            else True
        )
        whole = whole_images(settings, chain, files, collation) if pair else None
        if isinstance(whole, ImagePlan):
            stages = [dataclasses.replace(s, why=_LOOKS_UP) if s.name == "read" else s for s in whole.stages]
            return dataclasses.replace(whole, stages=stages, iterator=OwnClassIterator)
    return _prefix(settings, code, chain, collating)


def _prefix(settings: Settings, code: SampleCode, whole: transforms.Chain, collating: str) -> Plan:
    dataset = own_classes.decoded(sources.GivenFiles("files"), code)
    chain = own_classes.front(code, dataset)
    runs = transforms.runs_of(chain, dataset)
    if not (chain.known or any(run.chain for run in runs)):
        return reason_for(settings, whole.why or collating or "images have no fixed size")
    follow_pillow()
    where = python_place(settings)
    native = f"{NATIVE}, within each worker" if settings.num_workers else f"{NATIVE}, in this process"
    read = native if chain.known else where
    stages = [order_stage(settings), Stage("read", type(settings.dataset).__qualname__, read, _LOOKS_UP)]
    stages += known_stages(chain, native, DRAWN_IN_WORKERS)
    stages += rest_stages(runs, where, native)
    if code.called:
        stages.append(Stage("target", "target_transform", where, "yours"))
    stages.append(collate_stage(settings, collating or why_no_batch(whole)))
    known = (*chain.known, *(name for run in runs if run.chain for name in run.chain.known))
    return PrefixPlan(stages, known, OwnClassPrefix)


def _first_paths(settings: Settings, code: SampleCode) -> list[str]:
    paths: list[str] = []
    if code.called:
        return paths
    with contextlib.suppress(Exception):  # the loader raises it when it reads the sample
        for index in range(min(LOOKED_AT, len(settings.dataset))):
            paths.append(str(code.row(sources.locate(settings.dataset, index)[1])[0]))
    return paths


def _why_unequal(settings: Settings, progress: LoaderProgress, leaf: Any, code: SampleCode) -> str:
    """why_unequal(), computed once for a loader and its transforms."""
    steps = tuple(
        (step.slot, id(step.transform) if step.slot else 0) for step in code.steps
    )  # others are made each time
    key = (id(settings.dataset), id(leaf), code.mode, code.keys, steps)
    if progress.compared is None or progress.compared[0] != key:
        progress.compared = key, why_unequal(settings.dataset, leaf, code)
    return progress.compared[1]
