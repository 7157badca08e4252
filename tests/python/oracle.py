# SPDX-License-Identifier: Apache-2.0
"""What pixels must be: Pillow's, of either order of passes that its versions have, whichever version is installed."""

from __future__ import annotations

from PIL import Image


def resize(image: Image.Image, size: tuple[int, int], resample: Image.Resampling, pillow: int = 13) -> Image.Image:
    """`image.resize(size, resample)`, size (width, height), as major version `pillow` does it.

    Pillow resizes in two passes and rounds to 8 bits between them, so that their order shows in the pixels. Until 12
    the width goes first; since 13 the height does where it shrinks by more than twice what the width does. One pass
    at a time leaves the installed Pillow no choice.
    """
    if resample == Image.Resampling.NEAREST:
        return image.resize(size, resample)
    fewer_rows, fewer_columns = image.height - size[1], image.width - size[0]
    height_first = pillow >= 13 and fewer_rows > 0 and fewer_rows > 2 * fewer_columns
    between = (image.width, size[1]) if height_first else (size[0], image.height)
    return image.resize(between, resample).resize(size, resample)
