# SPDX-License-Identifier: Apache-2.0
"""Decodes images through Pillow if the engine has no decoder; the engine's threads call these functions and hold the
GIL.
"""

from __future__ import annotations

import functools
import io
from typing import Any

from feedline import _engine

from .. import image_depth, image_formats
from .fork_lock import fork_lock

_ORIENTATION = 0x0112  # EXIF tag of the orientation

Opened = tuple[str, int, int, Any, int, str]  # kind, width, height, Pillow's image, EXIF's orientation, depth


@functools.cache
def _pillow() -> tuple[Any, Any] | None:
    """Returns Pillow's modules Image, with all plugins loaded, and ImageOps; None if Pillow is not installed."""
    with fork_lock:  # Pillow's plugins import each other, and concurrent threads would see incomplete modules
        try:
            from PIL import Image, ImageOps
        except ImportError:
            return None
        Image.init()
        return Image, ImageOps


def opened(data: bytes, applies_exif: bool) -> Opened | str:
    """Reads the header of the (first) image. Returns an error text on failure."""
    pillow = _pillow()
    if pillow is None:
        return "decoding this format requires Pillow, which is not installed: pip install pillow"
    images, image_operations = pillow
    stored = image_formats.of(data)
    try:
        image = images.open(io.BytesIO(data))
        kind = image.format or "other"
        is_rotated = stored is not None and stored.is_rotated_by_pillow
        orientation = 1 if is_rotated else image.getexif().get(_ORIENTATION, 1)
        orientation = orientation if isinstance(orientation, int) and 1 <= orientation <= 8 else 1
        depth = image_depth.of(image, data)
        if applies_exif and orientation != 1:
            image = image_operations.exif_transpose(image)
    except images.UnidentifiedImageError as error:
        requires = stored.pillow_requires if stored is not None else ""
        return _words(error) + (f"; it requires {requires}" if requires else "")
    except Exception as error:
        return _words(error)
    return kind, image.width, image.height, image, orientation, depth


def decoded(image: Any, mode: str, left: int, top: int, width: int, height: int) -> bytes | str:
    """Returns a region's pixels row by row, like ``image.convert(mode).crop(...)``, or an error text."""
    try:
        pixels: bytes = image.convert(mode).crop((left, top, left + width, top + height)).tobytes()
    except Exception as error:
        return _words(error)
    return pixels


def _words(error: Exception) -> str:
    name = type(error).__name__
    words = "cannot identify image file" if name == "UnidentifiedImageError" else str(error)  # Pillow's message names
    # the buffer
    return f"Pillow: {words or name}"


def with_pillow_counts(text: str) -> str:
    """Appends a line about images decoded by Pillow in this process, if any, to the text of ``explain()``."""
    counts = _engine.foreign_images_decoded()
    if not counts:
        return text
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
    return (
        f"{text}decode     images decoded by Pillow so far, holding the GIL, because the engine has no decoder: "
        f"{kinds}\n"
    )
