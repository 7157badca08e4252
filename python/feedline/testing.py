# SPDX-License-Identifier: Apache-2.0
"""Functions for tests that compare the engine's code paths; not for training."""

from __future__ import annotations

import typing

from . import _engine
from .data import arguments
from .data.dataset import Dataset
from .data.specs import Drawn

if typing.TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def force_simd_variant(name: str) -> None:
    """Selects one of :func:`feedline.simd_variants` for the whole process; ``""`` selects the fastest one that the CPU
    supports. Do not call this function while a loader runs.

    Raises:
        ConfigError: `name` is not one of the variants.
    """
    _engine.force_simd_variant(name)


def force(
    *,
    read_latency: float = 0.0,
    read_ahead: typing.Literal["auto", "never", "always", "threads"] = "auto",
    random_threads: bool = False,
    machine_root: str = "",
    upload_part_bytes: int = 0,
    block_cache_bytes: int = 0,
) -> None:
    """Forces test conditions in this process; conditions that are not given return to their defaults. Do not call this
    function while a loader is created or runs.

    Args:
        read_latency: seconds added to each read of sources that are opened afterwards.
        read_ahead: whether loaders that are created afterwards prefetch samples; ``"threads"`` means ``"always"``
            without io_uring.
        random_threads: whether loaders with ``num_workers="auto"`` that are created afterwards use a random number of
            threads or processes, which changes with every batch.
        machine_root: a folder whose ``proc`` and ``sys`` replace the machine's own in code that uses a GPU.
        upload_part_bytes: size of an upload part, at least 5 MiB; 0 selects the default size.
        block_cache_bytes: size of the cache for decompressed table blocks, for tables that are opened afterwards; 0
            selects the default size.
    """
    _engine.set_test_conditions(locals())


def pixel_operation(
    pixels: npt.NDArray[np.uint8],
    name: str,
    *values: float,
    interpolation: str = "nearest",
    fill: tuple[int, int, int] = (0, 0, 0),
    size: tuple[int, int] | None = None,
    noise: npt.NDArray[np.uint8] | None = None,
) -> npt.NDArray[np.uint8]:
    """Runs one operation of the augmentation recipes with the given parameters: see
    ``include/feedline/pixel_operation.h``.

    Args:
        pixels: uint8, (height, width, 1 or 3).
        name: name of the operation, such as ``"autocontrast"``.
        values: the operation's numbers, in the order of the members in the header.
        interpolation: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``, for geometric operations.
        fill: value for pixels outside the image; for ``"erase"``, the colour of the erased box.
        size: (height, width) of the result, for ``"affine"`` and ``"perspective"``.
        noise: for ``"erase"``, bytes of shape (height, width, channels) that fill the box; for ``"elastic"``, the bytes
            of the displacement.

    Returns:
        uint8, (height, width, channels).

    Raises:
        ConfigError: a parameter is out of range.
    """
    return _engine.pixel_operation(pixels, name, values, interpolation, fill, size, noise)


def elastic_displacement(
    height: int,
    width: int,
    alpha: tuple[float, float],
    sigma: tuple[float, float],
    *,
    index: int,
    stream: int,
    seed: int = 0,
    epoch: int = 0,
) -> npt.NDArray[np.float32]:
    """Returns the displacement that ``elastic_transform`` applies to sample ``index`` if the transform is a dataset's
    operation number ``stream``.

    Returns:
        float32, (2, height, width): the displacement along x and y, in units of half the width and half the height.
    """
    import numpy as np

    drawn = _engine.elastic_displacement((height, width), alpha, sigma, seed, epoch, index, stream)
    return np.asarray(drawn, np.float32).reshape(2, height, width)


def time_pixel_operation(
    pixels: npt.NDArray[np.uint8], name: str, *values: float, interpolation: str = "nearest", runs: int = 1
) -> list[float]:
    """Measures ``runs`` runs of :func:`pixel_operation` in the engine, on warm memory, and returns the CPU time of each
    run in seconds.
    """
    return _engine.time_pixel_operation(pixels, name, values, interpolation, runs)


def draw_for_size(
    dataset: Dataset, height: int, width: int, index: int, *, seed: int = 0, epoch: int = 0
) -> list[Drawn]:
    """Returns the random choices of the dataset's operations for sample ``index``, assuming an image of this size in
    pixels.

    No sample is read, and the index may exceed the dataset's length.

    Raises:
        ConfigError: a size is below 1, or an argument is not an integer.
    """
    where = "draw_for_size"
    rows = dataset._engine.draw_for_size(
        arguments.integer(where, "height", height, low=1),
        arguments.integer(where, "width", width, low=1),
        arguments.integer(where, "index", index, low=0, high=2**63 - 1),
        arguments.integer(where, "seed", seed, low=0, high=2**64 - 1),
        arguments.integer(where, "epoch", epoch, low=0, high=2**64 - 1),
    )
    return [Drawn(operation, name, tuple(values), view) for operation, name, values, view in rows]
