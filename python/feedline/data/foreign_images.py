# SPDX-License-Identifier: Apache-2.0
"""Images that the engine has no decoder for, by Pillow: its threads call these functions, under Python's lock."""

from __future__ import annotations

import functools
import io
import logging  # noqa: F401
import os
import threading
from typing import Any

from feedline import _engine

from . import image_depth

_ORIENTATION = 0x0112  # of EXIF's tags

Opened = tuple[str, int, int, Any, int, str]  # kind, width, height, Pillow's image, EXIF's orientation, depth

# Held across fork(): a child would wait for ever for the import that a thread of its parent had begun. logging, which
# Pillow imports, holds its lock across fork() too: imported first, it takes its lock after this one.
_importing = threading.RLock()
os.register_at_fork(before=_importing.acquire, after_in_parent=_importing.release, after_in_child=_importing.release)


@functools.cache
def _pillow() -> tuple[Any, Any] | None:
    """Pillow's Image, with all its plugins, and ImageOps; None: it is not installed."""
    with _importing:  # Pillow's plugins import each other, and two threads would see modules that are not complete
        try:
            from PIL import Image, ImageOps
        except ImportError:
            return None
        Image.init()
        return Image, ImageOps


def opened(data: bytes, applies_exif: bool) -> Opened | str:
    """The image's header: its first one, where there are several. Text: why there is none."""
    pillow = _pillow()
    if pillow is None:
        return "reading it takes Pillow, which is not installed (pip install pillow)"
    images, image_operations = pillow
    try:
        image = images.open(io.BytesIO(data))
        kind = image.format or "other"
        # Pillow always turns TIFF images by their EXIF orientation
        orientation = 1 if kind == "TIFF" else image.getexif().get(_ORIENTATION, 1)
        orientation = orientation if isinstance(orientation, int) and 1 <= orientation <= 8 else 1
        depth = image_depth.of(image, data)
        if applies_exif and orientation != 1:
            image = image_operations.exif_transpose(image)
    except Exception as error:
        return _words(error)
    return kind, image.width, image.height, image, orientation, depth


def decoded(image: Any, mode: str, left: int, top: int, width: int, height: int) -> bytes | str:
    """A region's pixels as ``image.convert(mode).crop(...)`` has them, row by row. Text: why there are none."""
    try:
        pixels: bytes = image.convert(mode).crop((left, top, left + width, top + height)).tobytes()
    except Exception as error:
        return _words(error)
    return pixels


def _words(error: Exception) -> str:
    name = type(error).__name__
    words = "cannot identify image file" if name == "UnidentifiedImageError" else str(error)  # it would name a buffer
    return f"Pillow: {words or name}"


def told(text: str) -> str:
    """The text of a loader's ``explain()``, with a line for what this process has decoded so, if anything."""
    counts = _engine.foreign_images_decoded()
    if not counts:
        return text
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
    return f"{text}decode     by Pillow so far, under Python's lock, as the engine has no decoder for them: {kinds}\n"
