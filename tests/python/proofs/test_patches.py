# SPDX-License-Identifier: Apache-2.0
"""Random crops of JPEGs of every kind, decoded from checkpoints, from files and from ranges of remote files, have the
pixels of decodes from the start.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import feedline
from feedline import _engine

sys.path.append(str(Path(__file__).parents[1]))
from range_server import serving

CROPS, LONG_CROPS = 400, 10_000
SIDES = (1, 33, 100, 224, 399)
SIZES = ((1203, 901), (640, 1999), (2401, 403))
MODES = {"L": "L", "CMYK": "CMYK", "4:4:4": "RGB", "4:2:2": "RGB", "4:2:0": "RGB"}
RESTARTS = (None, 1, 40, 500)  # MCUs


def photo(seed: int, width: int, height: int, kind: str, restarts: int | None, **options: object) -> bytes:
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (height // 16, width // 16, 3), dtype=np.uint8))
    pixels = np.asarray(coarse.resize((width, height), Image.BICUBIC), dtype=np.int16)
    pixels = pixels + rng.integers(-14, 15, (height, width, 1), dtype=np.int16)
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).convert(MODES[kind])
    if kind.startswith("4"):
        options["subsampling"] = kind
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=90, **options)
    encoded = stream.getvalue()
    return (restarts and _engine.jpeg_with_restarts(encoded, restarts)) or encoded


def write_photos(data: Path) -> int:
    (data / "only").mkdir(parents=True)
    kinds = [(size, kind, restarts, {}) for size in SIZES for kind in MODES for restarts in RESTARTS]
    kinds += [(size, "4:2:0", None, {"progressive": True}) for size in SIZES]
    lines = []
    for i, ((width, height), kind, restarts, options) in enumerate(kinds):
        encoded = photo(i, width, height, kind, restarts, **options)
        (data / "only" / f"{i:03}.jpg").write_bytes(encoded)
        lines.append(f"{len(encoded)} only/{i:03}.jpg\n")
    (data / "feedline-listing.txt").write_text(f"feedline-listing 1 {len(lines)}\n" + "".join(lines))
    return len(kinds)


def test_crops_equal_decodes_from_the_start(
    tmp_path: Path, long_form: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    photos = write_photos(tmp_path / "served" / "data")
    per_side = -(-(LONG_CROPS if long_form else CROPS) // len(SIDES))
    crops = 0
    with serving(tmp_path / "served") as server:
        local = feedline.open(str(tmp_path / "served" / "data"))
        remote = feedline.open(server.url("data/"))
        plain = feedline.open(str(tmp_path / "served" / "data"), checkpoints=False)
        if not long_form:
            for dataset in (local, remote):
                dataset._engine.make_checkpoints(2)
        for side in SIDES:
            loaders = [
                source.random_crop(side).loader(7, shuffle=True, seed=side, output="numpy", num_workers=2)
                for source in (local, remote, plain)
            ]
            for _ in range(-(-per_side // photos)):
                for mine, ranged, expected in zip(*loaders, strict=True):
                    np.testing.assert_array_equal(mine[0], expected[0])
                    np.testing.assert_array_equal(ranged[0], expected[0])
                    crops += len(expected[0])
            used, ranges = (loader.stats()["checkpoints"] for loader in loaders[:2])
            for loader in loaders:
                loader.close()
    assert crops >= per_side * len(SIDES)
    assert used["used"] > crops / 8
    assert ranges["ranges"] > crops / 8
    assert ranges["refused_ranges"] == used["changed"] == ranges["changed"] == 0
    with capsys.disabled():
        print(f"\n{crops} crops, {used['used']} from checkpoints, {ranges['ranges']} from ranges: ", end="")
