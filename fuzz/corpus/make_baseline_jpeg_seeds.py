# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of baseline_jpeg_fuzz: small JPEGs in every layout that the decoders support."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

FOLDER = Path(__file__).parent / "baseline_jpeg"
SAMPLINGS = {"444": 0, "422": 1, "420": 2}


def picture(width: int, height: int, seed: int) -> Image.Image:
    """Returns gradients, an edge and some noise."""
    y, x = np.mgrid[:height, :width]
    base = np.stack([x * 3 + y, x + y * 5, 255 - x * 2 - y], axis=-1) % 256
    base[(x - width // 2) ** 2 + (y - height // 3) ** 2 < width * 4] //= 2
    grain = np.random.default_rng(seed).integers(0, 24, base.shape)
    return Image.fromarray(np.clip(base + grain, 0, 255).astype(np.uint8))


def main() -> None:
    """Writes all seeds, with the same bytes in every run with the same Pillow."""
    FOLDER.mkdir(exist_ok=True)
    for number, (name, subsampling) in enumerate(SAMPLINGS.items()):
        for quality in (15, 90, 100):
            for optimize in (False, True):
                image = picture(29 + 8 * number, 35 - 3 * number, quality)
                path = FOLDER / f"{name}_q{quality}{'_optimised' if optimize else ''}.jpg"
                image.save(path, quality=quality, subsampling=subsampling, optimize=optimize)
        for blocks in (1, 3):
            path = FOLDER / f"{name}_restart_{blocks}.jpg"
            picture(50, 40, blocks).save(path, quality=80, subsampling=subsampling, restart_marker_blocks=blocks)
    for optimize in (False, True):
        path = FOLDER / f"grey{'_optimised' if optimize else ''}.jpg"
        picture(33, 31, 5).convert("L").save(path, quality=85, optimize=optimize)
    for name, subsampling in SAMPLINGS.items():
        for quality, blocks in ((60, 0), (95, 0), (80, 5)):
            path = FOLDER / f"progressive_{name}_q{quality}.jpg"
            options = {"restart_marker_blocks": blocks} if blocks else {}
            picture(35, 29, quality).save(path, quality=quality, subsampling=subsampling, progressive=True, **options)
    picture(33, 31, 5).convert("L").save(FOLDER / "progressive_grey.jpg", quality=85, progressive=True)
    picture(150, 20, 6).save(FOLDER / "wide.jpg", quality=95, subsampling=2)


if __name__ == "__main__":
    main()
