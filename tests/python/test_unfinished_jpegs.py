# SPDX-License-Identifier: Apache-2.0
"""Progressive JPEGs that end, with an end marker, before their last scans have Pillow's pixels with every sampling."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, features

import feedline

# By cjpeg of libjpeg-turbo 2.1.5 (-quality 50 -progressive -sample ...). Pillow writes only 4:4:4, 4:2:2 and 4:2:0.
STORED = sorted((Path(__file__).parent / "progressive_jpegs").glob("*.jpg"))
# Block smoothing next to edges changed in this version.
REFERENCE = (3, 0, 1)

pytestmark = pytest.mark.skipif(
    tuple(int(part) for part in (features.version("libjpeg_turbo") or "0").split(".")) < REFERENCE,
    reason="Pillow has a libjpeg-turbo older than 3.0.1, or another libjpeg",
)


def written(height: int, width: int, subsampling: str) -> bytes:
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.default_rng(0).normal(0, 20, (height, width))
    pixels = np.stack([128 + 100 * np.sin(x / 7 + y / 13 + k) + noise for k in range(3)], -1)
    out = io.BytesIO()
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    image.save(out, "JPEG", quality=85, progressive=True, subsampling=subsampling)
    return out.getvalue()


def cut_after_each_scan(data: bytes) -> list[bytes]:
    scans = [match.start() for match in re.finditer(b"\xff\xda", data)]
    assert len(scans) > 3
    return [data[:end] + b"\xff\xd9" for end in scans[1:]] + [data]


def assert_pillows_pixels(data: bytes) -> None:
    for scans, part in enumerate(cut_after_each_scan(data), 1):
        expected = np.asarray(Image.open(io.BytesIO(part)).convert("RGB"))
        height, width = expected.shape[:2]
        assert np.array_equal(feedline.decode_image(part), expected), f"after {scans} scans"
        box = (width // 3, height // 4, width - 2, height - 1)
        crop = feedline.decode_image(part, box)
        assert np.array_equal(crop, expected[box[1] : box[3], box[0] : box[2]]), f"a region after {scans} scans"


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("size", [(120, 160), (97, 31), (33, 16), (9, 9), (17, 8), (8, 40)], ids=str)
def test_pixels_of_what_pillow_writes(size: tuple[int, int], subsampling: str) -> None:
    assert_pillows_pixels(written(*size, subsampling))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_pixels_of_other_samplings(path: Path) -> None:
    data = path.read_bytes()
    if "arithmetic" in path.stem:
        try:
            Image.open(io.BytesIO(data)).load()
        except OSError as error:
            pytest.skip(f"Pillow's libjpeg-turbo has no arithmetic coding: {error}")
    assert_pillows_pixels(data)


def test_a_loader_gives_the_same_pixels(tmp_path: Path) -> None:
    parts = cut_after_each_scan(written(61, 90, "4:2:0"))
    (tmp_path / "one").mkdir()
    for number, part in enumerate(parts):
        (tmp_path / "one" / f"{number:02}.jpg").write_bytes(part)
    dataset = feedline.open(tmp_path).random_crop(32)
    loaded = next(iter(dataset.loader(len(parts), num_workers=2, output="numpy"))).image
    for number, part in enumerate(parts):
        whole = np.asarray(Image.open(io.BytesIO(part)).convert("RGB"))
        crop = loaded[number].transpose(1, 2, 0)
        places = np.lib.stride_tricks.sliding_window_view(whole, (32, 32, 3)).reshape(-1, 32, 32, 3)
        assert (places == crop).all(axis=(1, 2, 3)).any(), f"the sample after {number + 1} scans"


def test_a_scan_that_is_cut_in_the_middle_is_an_error() -> None:
    data = written(120, 160, "4:2:0")
    scans = [match.start() for match in re.finditer(b"\xff\xda", data)]
    middle = (scans[2] + scans[3]) // 2
    with pytest.raises(feedline.DataError, match="truncated JPEG: ends in scan 3"):
        feedline.decode_image(data[:middle])
