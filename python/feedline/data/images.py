# SPDX-License-Identifier: Apache-2.0
"""Decodes and resizes single images with the engine, without a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _engine
from ..errors import ConfigError
from . import arguments

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


Buffer = bytes | bytearray | memoryview


class ImageInfo(NamedTuple):
    """Header of an image. ``format`` is a name such as ``"jpeg"``, or for formats that only Pillow decodes, Pillow's
    name in lower case. Sizes are in pixels.
    """

    format: str
    width: int
    height: int


def image_info(data: Buffer) -> ImageInfo:
    """Reads the header of an encoded image.

    ``data`` is bytes or any other contiguous buffer. Raises DataError if Feedline cannot decode the image.
    """
    _require_buffer("image_info", data)
    return ImageInfo(*_engine.image_info(data))


def _require_buffer(where: str, data: Any) -> None:
    try:
        is_contiguous = memoryview(data).contiguous
    except TypeError:
        raise ConfigError(f"{where}: data must be bytes or another buffer, not {type(data).__name__}") from None
    if not is_contiguous:
        raise ConfigError(f"{where}: data is not a contiguous buffer; pass bytes(data)")


def decode_image(
    data: Buffer, box: Sequence[int] | None = None, mode: str = "RGB", *, apply_exif_orientation: bool = False
) -> NDArray[numpy.uint8]:
    """Decodes an image, with the same pixels as ``PIL.Image.open(...).convert(mode).crop(box)``.

    Args:
        data: bytes or any other contiguous buffer, in a format that docs/formats.md#images lists.
        box: (left, top, right, bottom) in pixels, inside the image; None is the whole image. Only this region is
            decoded.
        mode: ``"RGB"`` or ``"L"``.
        apply_exif_orientation: applies the EXIF orientation; the box then refers to the rotated image.

    Returns:
        uint8 array of shape (height, width, channels).

    Raises:
        ConfigError: the box is not inside the image.
        DataError: the image is damaged or unsupported.
    """
    where = "decode_image"
    word, turned = (
        arguments.choice(where, "mode", mode, ("RGB", "L")),
        arguments.flag(where, "apply_exif_orientation", apply_exif_orientation),
    )
    _require_buffer(where, data)
    if box is None:
        return _engine.decode_image(data, None, word, turned)
    if not arguments.is_sequence(box) or len(box) != 4:
        raise ConfigError(f"{where}: box must be (left, top, right, bottom), not {box!r}")
    left, top, right, bottom = (arguments.integer(where, "box", edge) for edge in box)
    if right <= left or bottom <= top:
        raise ConfigError(f"{where}: box must have right > left and bottom > top, not {box!r}")
    return _engine.decode_image(data, (left, top, right - left, bottom - top), word, turned)


def resize_image(
    image: NDArray[numpy.uint8], size: Sequence[int], interpolation: Any = "bilinear"
) -> NDArray[numpy.uint8]:
    """Resizes to ``size`` (height, width) as ``PIL.Image.resize`` does, with antialiasing except for ``"nearest"``.

    Args:
        image: uint8 array of shape (height, width, channels) with 1 or 3 channels, or (height, width).
        size: pixels.
        interpolation: ``"nearest"``, ``"box"``, ``"bilinear"``, ``"bicubic"`` or ``"lanczos"``.

    Returns:
        uint8 array with as many dimensions as ``image``.
    """
    where = "resize_image"
    height, width = arguments.edge_size(where, size)
    if width == 0:
        raise ConfigError(f"{where}: size must be (height, width), not {size!r}")
    if getattr(image, "ndim", 0) not in (2, 3) or str(getattr(image, "dtype", "")) != "uint8":
        given = f"{image.dtype} of shape {image.shape}" if hasattr(image, "dtype") else type(image).__name__
        raise ConfigError(
            f"{where}: image must be a uint8 array of shape (height, width) or (height, width, channels), not {given}"
        )
    flat = image.ndim == 2
    pixels = image[:, :, None] if flat else image
    resized = _engine.resize_image(pixels, height, width, arguments.interpolation(where, interpolation))
    return resized[:, :, 0] if flat else resized


def simd_variants() -> list[str]:
    """Returns the instruction sets that the kernels can use on this machine, best first; ``"scalar"`` is the last."""
    return list(_engine.simd_variants())


def active_simd_variant() -> str:
    """Returns the instruction set in use."""
    return _engine.active_simd_variant()


def follow_pillow(major: int) -> None:
    """Sets the major version of Pillow (10 to 13, by default 13) whose resizes are reproduced, for the whole process.

    Pillow 13 orders the two passes of a resize by the image sizes, which changes some pixels by one level. In Pillow 11
    and earlier, the horizontal pass comes first. Pillow 12 (from 12.2 on) also runs the horizontal pass first, unless
    an image is over 100 times as tall as wide. Do not call this function while a loader runs.

    Raises:
        ConfigError: the version is not supported.
    """
    _engine.follow_pillow(arguments.integer("follow_pillow", "major", major))
