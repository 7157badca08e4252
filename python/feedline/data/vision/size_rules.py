# SPDX-License-Identifier: Apache-2.0
"""The sizes to which the image processors of transformers 5.23 resize images. Sizes are (height, width) in pixels."""

from __future__ import annotations

import functools
import math

Size = tuple[int, int]
_MOST_ELONGATED = 200


def smart_resize(size: Size, factor: int, fewest: int, most: int) -> Size:
    """Returns multiples of ``factor`` with between ``fewest`` and ``most`` pixels, as near to the aspect ratio as
    possible: ``models/qwen2_vl/image_processing_qwen2_vl.py``. Raises ValueError for a ratio above 200.
    """
    height, width = size
    if max(size) / min(size) > _MOST_ELONGATED:
        raise ValueError(
            f"the longer side of {width} x {height} pixels is over {_MOST_ELONGATED} times the shorter one"
        )
    rows, columns = round(height / factor) * factor, round(width / factor) * factor
    if rows * columns > most:
        shrink = math.sqrt(height * width / most)
        rows = max(factor, math.floor(height / shrink / factor) * factor)
        columns = max(factor, math.floor(width / shrink / factor) * factor)
    elif rows * columns < fewest:
        grow = math.sqrt(fewest / (height * width))
        rows = math.ceil(height * grow / factor) * factor
        columns = math.ceil(width * grow / factor) * factor
    return rows, columns


def with_shorter_side(size: Size, shorter: int) -> Size:
    """Returns the size with the same aspect ratio: ``get_resize_output_image_size``, ``image_transforms.py``."""
    height, width = size
    longer = int(shorter * max(size) / min(size))
    return (longer, shorter) if width <= height else (shorter, longer)


def tile_grid(size: Size, tile: Size, fewest: int, most: int) -> tuple[int, int]:
    """Returns the rows and columns of tiles whose aspect ratio is nearest to the image's:
    ``get_optimal_tiled_canvas``, ``models/got_ocr2/image_processing_got_ocr2.py``.
    """
    height, width = size
    best, best_difference = (1, 1), math.inf
    for columns, rows in _grids(fewest, most):
        difference = abs(width / height - columns / rows)
        is_larger = difference == best_difference and width * height > 0.5 * tile[0] * tile[1] * columns * rows
        if difference < best_difference or is_larger:
            best, best_difference = (rows, columns), difference
    return best


@functools.cache
def _grids(fewest: int, most: int) -> list[tuple[int, int]]:
    grids = ((columns, rows) for columns in range(1, most + 1) for rows in range(1, most + 1))
    return sorted((one for one in grids if fewest <= one[0] * one[1] <= most), key=lambda one: one[0] * one[1])


def best_canvas(size: Size, canvases: list[Size]) -> Size:
    """Returns the canvas in which the image keeps most of its pixels: ``select_best_resolution``,
    ``image_processing_utils.py``.
    """
    height, width = size
    best, most_used, least_wasted = canvases[0], 0, math.inf
    for rows, columns in canvases:
        scale = min(columns / width, rows / height)
        used = min(int(width * scale) * int(height * scale), width * height)
        wasted = rows * columns - used
        if used > most_used or (used == most_used and wasted < least_wasted):
            best, most_used, least_wasted = (rows, columns), used, wasted
    return best


def inside_canvas(size: Size, canvas: Size) -> Size:
    """Returns the largest size in the canvas with the same aspect ratio: ``get_patch_output_size``,
    ``image_transforms.py`` or ``image_processing_utils.py``.
    """
    height, width = size
    by_width, by_height = canvas[1] / width, canvas[0] / height
    if by_width < by_height:
        return min(math.ceil(height * by_width), canvas[0]), canvas[1]
    return canvas[0], min(math.ceil(width * by_height), canvas[1])


def unpadded_cells(size: Size, cells: Size) -> Size:
    """Returns the rows and columns of features of a padded canvas that are not padding:
    ``_get_unpadded_features``, ``models/llava_next/processing_llava_next.py``.
    """
    height, width = size
    rows, columns = cells
    if width / height > columns / rows:
        rows -= (rows - int(round(height * (columns / width), 7))) // 2 * 2
    else:
        columns -= (columns - int(round(width * (rows / height), 7))) // 2 * 2
    return rows, columns
