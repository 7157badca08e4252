# SPDX-License-Identifier: Apache-2.0
"""Recognises webdataset's decode handlers whose images the engine can decode."""

from __future__ import annotations

import importlib
from typing import Any

from ..transforms import transforms
from . import sources

MODES = {"rgb": "RGB", "l": "L"}  # webdataset's names of the modes to which the engine decodes, and the engine's
PILLOW, ARRAYS = "Pillow images", "arrays"


def kind_of(handler: Any) -> str | None:
    """Returns the kind of images that a decode handler creates if the engine supports it; otherwise None."""
    autodecode = importlib.import_module("webdataset.autodecode")
    if type(handler) is not autodecode.ImageHandler:
        return None
    kind, _, mode = autodecode.imagespecs[handler.imagespec]
    if mode not in MODES:
        return None
    return PILLOW if kind == "pil" else ARRAYS


def pillow_mode(handler: Any) -> str | None:
    """Returns the mode of the PIL images that a handler creates; None if it creates no PIL images."""
    if kind_of(handler) != PILLOW:
        return None
    autodecode = importlib.import_module("webdataset.autodecode")
    return MODES[autodecode.imagespecs[handler.imagespec][2]]


def chain_of(function: Any, mode: str) -> transforms.Chain:
    """Returns the supported transforms at the start of `function`, for images in `mode`."""
    dataset = sources.GivenFiles("WebDataset").dataset
    if mode == "RGB":  # the default; an operation would precede random ones
        return transforms.chain_of(function, dataset)
    return transforms.chain_of(function, dataset.decode(mode), channels=1)
