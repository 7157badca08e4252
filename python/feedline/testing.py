# SPDX-License-Identifier: Apache-2.0
"""For tests that hold every path of the engine against each other; no training needs it."""

from __future__ import annotations

import typing

from . import _engine

if typing.TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def force_simd_variant(name: str) -> None:
    """Uses one of :func:`feedline.simd_variants` in the whole process; ``""`` is the best. Not while a loader runs.

    Raises:
        ConfigError: none of them.
    """
    _engine.force_simd_variant(name)


def pixel_operation(
    pixels: npt.NDArray[np.uint8],
    name: str,
    *values: float,
    interpolation: str = "nearest",
    fill: tuple[int, int, int] = (0, 0, 0),
    size: tuple[int, int] | None = None,
    noise: npt.NDArray[np.uint8] | None = None,
) -> npt.NDArray[np.uint8]:
    """One operation of the augmentation recipes, its parameters chosen: see ``include/feedline/pixel_operation.h``.

    Args:
        pixels: uint8, (height, width, 1 or 3).
        name: such as ``"autocontrast"``.
        values: its numbers, in the order of the members there.
        interpolation: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``, of those that move pixels.
        fill: where those have no source; the colour of ``"erase"``.
        size: (height, width) of what ``"affine"`` and ``"perspective"`` give.
        noise: bytes for ``"erase"``, (height, width, channels) of its box.

    Returns:
        uint8, (height, width, channels).

    Raises:
        ConfigError: a parameter out of range.
    """
    return _engine.pixel_operation(pixels, name, values, interpolation, fill, size, noise)


def time_pixel_operation(
    pixels: npt.NDArray[np.uint8], name: str, *values: float, interpolation: str = "nearest", runs: int = 1
) -> list[float]:
    """Seconds of each of ``runs`` runs of :func:`pixel_operation` inside the engine, on warm memory."""
    return _engine.time_pixel_operation(pixels, name, values, interpolation, runs)
