# SPDX-License-Identifier: Apache-2.0
"""Determines whether the engine can collate a loader's batches, and the reason if it cannot."""

from __future__ import annotations

from typing import Any

from torch.utils.data._utils import collate as torch_collate

from ..options.settings import Settings
from .functions import batch_functions, collate_functions

_STOCK_COLLATE = dict(torch_collate.default_collate_fn_map)


def why_no_collating(settings: Settings) -> str:
    """Returns why the engine cannot replace collate_fn, or an empty string if it can."""
    collation = collation_of(settings)
    if isinstance(collation, str):
        return collation
    return "" if isinstance(collation, collate_functions.Stock) else "collate_fn is not torch's default_collate"


def collation_of(settings: Settings) -> collate_functions.Collation | str:
    """Returns the effect of collate_fn on images and labels, or why the engine cannot replace it."""
    if not settings.auto_collation:
        return "batch_size=None turns off batching"
    if dict(torch_collate.default_collate_fn_map) != _STOCK_COLLATE:
        return "default_collate_fn_map was changed"
    return collate_functions.collation_of(settings.collate_fn)


def column_collation_of(settings: Settings) -> tuple[Any, str]:
    """Returns the effect of collate_fn on samples that are dicts, or None and the reason why the engine cannot replace
    it.
    """
    if not settings.auto_collation:
        return None, "batch_size=None turns off batching"
    if dict(torch_collate.default_collate_fn_map) != _STOCK_COLLATE:
        return None, "default_collate_fn_map was changed"
    collation = batch_functions.collation_of(settings.collate_fn)
    return collation, "" if collation else "collate_fn is not torch's default_collate"
