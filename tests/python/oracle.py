# SPDX-License-Identifier: Apache-2.0
"""What pixels must be: Pillow's, in the order of passes that Pillow 10 to 12 have."""

from __future__ import annotations

from PIL import Image


def resize(image: Image.Image, size: tuple[int, int], resample: Image.Resampling) -> Image.Image:
    """`image.resize(size, resample)`, size (width, height), as Pillow 10 to 12 do it: rows first, then columns.

    Pillow 13 works on columns first where the height shrinks by more than twice what the width does. That rounds
    other values between the passes, so that its pixels differ by 1 from those of every version before. One pass at
    a time leaves Pillow no choice.
    """
    if resample != Image.Resampling.NEAREST:
        image = image.resize((size[0], image.height), resample)
    return image.resize(size, resample)
