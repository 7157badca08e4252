# SPDX-License-Identifier: Apache-2.0
"""Finds images with more than 8 bits per channel, through Pillow, and warns once per dataset."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _engine
from ..errors import Error

DEPTHS = ("16 bits", "32 bits", "floats")
_BITS_PER_SAMPLE, _SAMPLE_FORMAT = 258, 339  # TIFF tags
_FLOATS = 3  # a value of _SAMPLE_FORMAT
_READ_AS_STORED = "decode to stored values"  # in the engine's text
_SIZ = b"\xff\x4f\xff\x51"  # JPEG 2000: markers of the start of the codestream and of its first segment
_SIZ_PRECISION = 42  # offset from the markers to the byte that stores the first component's bit depth - 1


def of(image: Any, data: bytes) -> str:
    """Returns the depth in the engine's terms: ``"16 bits"``, ``"32 bits"``, ``"floats"``, or ``""`` for 8 bits or
    fewer.
    """
    if image.mode == "F":
        return "floats"
    if image.format == "TIFF":
        return _of_tiff(image.tag_v2)
    if image.format == "PPM":
        arguments = image.tile[0].args if image.tile else ()
        is_deep = image.mode == "I" or (isinstance(arguments, tuple) and arguments[-1] > 255)
        return "16 bits" if is_deep else ""
    if image.format == "JPEG2000":
        at = data.find(_SIZ)
        is_deep = 0 <= at < len(data) - _SIZ_PRECISION and (data[at + _SIZ_PRECISION] & 0x7F) + 1 > 8
        return "16 bits" if is_deep else ""
    if image.mode.startswith("I;16"):
        return "16 bits"
    return "32 bits" if image.mode == "I" else ""


def _of_tiff(tags: Any) -> str:
    if _FLOATS in _numbers(tags.get(_SAMPLE_FORMAT)):
        return "floats"
    bits = max(_numbers(tags.get(_BITS_PER_SAMPLE)), default=8)
    return "" if bits <= 8 else "16 bits" if bits <= 16 else "32 bits"


def _numbers(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else () if value is None else (value,)


def warn(dataset: _engine.Dataset) -> None:
    """Warns once per opened source after a sample with an image of more than 8 bits was read."""
    depth = dataset.take_image_depth()
    if depth:
        warnings.warn(f"{dataset.source}: {_described_in(dataset, depth)}", stacklevel=4)


def explained(text: str, dataset: _engine.Dataset) -> str:
    """Adds a line to the text of ``explain()`` if the first sample has an image of more than 8 bits."""
    if not len(dataset) or _READ_AS_STORED in text:
        return text
    try:
        _, _, stored = _engine.image_traits(dataset.encoded(0))
    except Error:  # no image, or an error that a loader will report
        return text
    depths = [depth for depth in DEPTHS if depth in stored]
    return f"{text}decode     {_described_in(dataset, depths[0])}\n" if depths else text


def _described_in(dataset: _engine.Dataset, depth: str) -> str:
    if dataset.format != "lerobot":
        return described(depth)
    files = dataset.source.rstrip("/") + "/data/*/*.parquet"
    return described(depth, remedy=f'open the images by themselves: feedline.open("{files}", fields=["KEY:image"])')


def described(depth: str, images: str = "the images", remedy: str = "use") -> str:
    values = depth if depth == "floats" else f"{depth} per channel"
    return (
        f"{images} have {values} and are read as 8 bits, as Pillow's convert() does: grey values outside 0 to 255 "
        "become 0 or 255, colours lose their lower bits; to read the stored values of PNGs and TIFFs, "
        f"{remedy}{' ' if remedy == 'use' else '.'}"
        'decode(dtype="uint16"), decode(dtype="float32") or decode(dtype="native")'
    )
