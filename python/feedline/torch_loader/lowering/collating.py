# SPDX-License-Identifier: Apache-2.0
"""Determines whether the engine can collate a loader's batches, and why not."""

from __future__ import annotations

from typing import Any

from torch.utils.data._utils import collate as torch_collate

from ..known import known_batch_functions, known_collate
from ..options.settings import Settings

_STOCK_COLLATE = dict(torch_collate.default_collate_fn_map)


def why_no_collating(settings: Settings) -> str:
    """Why the engine cannot replace collate_fn; empty if it can."""
    collation = collation_of(settings)
    if isinstance(collation, str):
        return collation
    return "" if isinstance(collation, known_collate.Stock) else "collate_fn is not torch's default_collate"


def collation_of(settings: Settings) -> known_collate.Collation | str:
    """The effect of collate_fn on images and labels; or why the engine cannot replace it."""
    if not settings.auto_collation:
        return "batch_size=None turns off batching"
    if dict(torch_collate.default_collate_fn_map) != _STOCK_COLLATE:
        return "default_collate_fn_map was changed"
    return known_collate.collation_of(settings.collate_fn)


def column_collation_of(settings: Settings) -> tuple[Any, str]:
    """The effect of collate_fn on samples that are dicts; or None, and why the engine cannot replace it."""
    if not settings.auto_collation:
        return None, "batch_size=None turns off batching"
    if dict(torch_collate.default_collate_fn_map) != _STOCK_COLLATE:
        return None, "default_collate_fn_map was changed"
    collation = known_batch_functions.collation_of(settings.collate_fn)
    return collation, "" if collation else "collate_fn is not torch's default_collate"
