# SPDX-License-Identifier: Apache-2.0
"""torchvision's random crop box, for peers without one. Uses only the standard library."""

from __future__ import annotations

import math
import random
from typing import Any


def crop_box(width: int, height: int, draw: Any = random) -> tuple[int, int, int, int]:
    """Returns RandomResizedCrop's box: left, top, width, height."""
    for _ in range(10):
        area = width * height * draw.uniform(0.08, 1.0)
        aspect = math.exp(draw.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left, top = draw.uniform(0, width - w + 1), draw.uniform(0, height - h + 1)
            return min(int(left), width - w), min(int(top), height - h), w, h
    side = min(width, height)  # only for photos with an extreme aspect ratio
    return (width - side) // 2, (height - side) // 2, side, side
