# SPDX-License-Identifier: Apache-2.0
"""Lowers loaders over webdataset's pipelines."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from ..native.plans import NATIVE, Plan, PrefixPlan, Stage
from ..options.settings import Settings
from . import webdataset_pipelines
from .datasets import image_handlers, remote_shards, sources
from .images import follow_pillow
from .stages import collate_stage, known_stages, python_place, reason_for, rest_stages
from .transforms import transforms


def plan_webdataset(settings: Settings) -> Plan:
    every = settings.lower == "require"
    asked = remote_shards.check(settings.dataset.pipeline, every)
    wrap = functools.partial(webdataset_pipelines.wrap, every=every)
    found = webdataset_pipelines.find(settings.dataset)
    where = python_place(settings)
    native = f"{NATIVE}, within each worker" if settings.num_workers else f"{NATIVE}, in this process"
    order = Stage(
        "order", type(settings.dataset).__qualname__, where, "webdataset determines shards, splits and shuffling"
    )
    reads = Stage("read", "tar files", where, "webdataset reads encoded images and other fields")
    if asked:
        what = f"bytes of {asked} shards"
        asks = 'lower="require" requests it' if every else f"their URLs begin with {remote_shards.PREFIX!r}"
        fetch = Stage("fetch", what, native, f"by Feedline's client, as {asks}")
    if isinstance(found, str):
        reason = reason_for(settings, found)
        if not asked:
            return reason
        decoded = [] if found == webdataset_pipelines.NO_IMAGES else [Stage("decode", "images", where, found)]
        rest = [dataclasses.replace(reads, why=found), *decoded, *reason.stages[2:]]
        return PrefixPlan([order, fetch, *rest], (), wrap)
    follow_pillow()
    stages = [order, fetch, reads] if asked else [order, reads]
    stages += [_decode_stage(handler, found, native, where) for handler in found.handlers()]
    for field in found.fields:
        stages += _field_stages(field, len(found.fields) > 1, native, where)
    stages.append(collate_stage(settings, "a previous transform runs in Python"))
    known = tuple(name for field in found.fields for name in field.chain.known)
    return PrefixPlan(stages, known, wrap)


def _decode_stage(handler: Any, found: webdataset_pipelines.Found, native: str, where: str) -> Stage:
    kind = image_handlers.kind_of(handler)
    spec = getattr(handler, "imagespec", None)
    if kind == image_handlers.ARRAYS:
        return Stage("decode", f"JPEG, PNG, WebP ({spec})", native, "arrays as webdataset creates them")
    if kind == image_handlers.PILLOW and found.late is not None:
        return Stage(
            "decode",
            f"JPEG, PNG, WebP ({spec})",
            native,
            "images with a supported transform; Pillow decodes the others",
        )
    if kind == image_handlers.PILLOW:
        return Stage("decode", f"images ({spec})", where, found.why)
    if spec is not None:
        return Stage("decode", f"images ({spec})", where, "the engine decodes only to RGB and L")
    return Stage("decode", transforms.name_of(handler), where, "the handler is user code")


def _field_stages(field: webdataset_pipelines.Field, one_of_many: bool, native: str, where: str) -> list[Stage]:
    of = f"{field.name}: " if one_of_many else ""
    chain = field.chain
    if not chain.known:
        return [Stage("transform", of + transforms.name_of(field.function), where, chain.why)]
    drawn = "the engine draws random numbers, seeded by one number from torch's generator per " + (
        "image" if of else "sample"
    )
    stages = [dataclasses.replace(stage, what=of + stage.what) for stage in known_stages(chain, native, drawn)]
    runs = transforms.runs_of(chain, sources.GivenFiles("images").dataset)
    return stages + rest_stages(runs, where, native, of)
