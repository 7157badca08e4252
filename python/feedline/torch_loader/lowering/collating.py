# SPDX-License-Identifier: Apache-2.0
"""Which of a loader's collating the engine can do, and why not the rest."""

from __future__ import annotations

from typing import Any

from torch.utils.data._utils import collate as torch_collate

from ..known import known_batch_functions, known_collate
from ..options.settings import Settings

_STOCK_COLLATE = dict(torch_collate.default_collate_fn_map)


def why_no_collating(settings: Settings) -> str:
    """Why the engine cannot do what collate_fn does; empty where it can."""
    collation = collation_of(settings)
    if isinstance(collation, str):
        return collation
    return "" if isinstance(collation, known_collate.Stock) else "collate_fn is not torch's default_collate"


def collation_of(settings: Settings) -> known_collate.Collation | str:
    """What collate_fn makes of images and labels; or why the engine cannot do that."""
    if not settings.auto_collation:
        return "batch_size=None: there is no batch"
    if dict(torch_collate.default_collate_fn_map) != _STOCK_COLLATE:
        return "default_collate_fn_map was changed"
    return known_collate.collation_of(settings.collate_fn)


def column_collation_of(settings: Settings) -> tuple[Any, str]:
    """What collate_fn makes of samples that are dicts; or None, and why the engine cannot do that."""
    if not settings.auto_collation:
        return None, "batch_size=None: there is no batch"
    if dict(torch_collate.default_collate_fn_map) != _STOCK_COLLATE:
        return None, "default_collate_fn_map was changed"
    collation = known_batch_functions.collation_of(settings.collate_fn)
    return collation, "" if collation else "collate_fn is not torch's default_collate"
