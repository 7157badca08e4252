# SPDX-License-Identifier: Apache-2.0
"""Images with more than 8 bits per channel: one warning per dataset, and lines in explain() and inspect."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline
from feedline.data.inspect import stored_images

Image = pytest.importorskip("PIL.Image")

GREY = np.linspace(0, 65535, 24 * 32).astype(np.uint16).reshape(24, 32)


def deep_files() -> dict[str, tuple[str, Any]]:
    """Maps names to (depth in the warning, image or bytes)."""
    plain = Image.fromarray
    header = b"P6\n32 24\n65535\n"
    return {
        "grey.png": ("16 bits", plain(GREY)),
        "grey.tif": ("16 bits", plain(GREY)),
        "wide.tif": ("32 bits", plain(GREY.astype(np.int32))),
        "float.tif": ("floats", plain(GREY.astype(np.float32))),
        "grey.pgm": ("16 bits", b"P5\n32 24\n65535\n" + GREY.astype(">u2").tobytes()),
        "few.pgm": ("16 bits", b"P5\n32 24\n4095\n" + (GREY >> 4).astype(">u2").tobytes()),
        "colour.ppm": ("16 bits", header + np.repeat(GREY[..., None], 3, 2).astype(">u2").tobytes()),
        "ascii.ppm": ("16 bits", b"P3\n1 1\n65535\n1 2 3\n"),
    }


def write(root: Path, name: str, content: Any) -> str:
    folder = root / "class"
    folder.mkdir()
    for k in range(3):
        path = folder / f"{k}{Path(name).suffix}"
        path.write_bytes(content) if isinstance(content, bytes) else content.save(path)
    return str(root)


def warned(read: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read()
    return [str(warning.message) for warning in caught if "read as 8 bits" in str(warning.message)]


@pytest.mark.parametrize("name", deep_files())
def test_each_kind_is_warned_of_once(tmp_path: Path, name: str) -> None:
    depth, content = deep_files()[name]
    dataset = feedline.open(write(tmp_path, name, content))
    resized = dataset.resize((24, 32))
    loader = resized.loader(2, output="numpy")
    texts = warned(lambda: [list(loader), list(loader), list(resized.loader(1, output="numpy")), dataset[0]])
    assert len(texts) == 1 and depth in texts[0] and dataset.source in texts[0]
    assert depth in dataset.explain() and depth in loader.explain()
    seen = stored_images.look(dataset.source, None, None)
    assert seen is not None and seen.stored[depth] == 3


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_single_samples_warn(tmp_path: Path, mode: str) -> None:
    dataset = feedline.open(write(tmp_path, "grey.png", Image.fromarray(GREY))).decode(mode)
    assert len(warned(lambda: [dataset[0], dataset[1]])) == 1


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.ppm", "a.bmp", "a.webp", "a.jpg"])
def test_8_bits_are_not_warned_of(tmp_path: Path, name: str) -> None:
    image = Image.fromarray(np.zeros((24, 32, 3), np.uint8))
    dataset = feedline.open(write(tmp_path, name, image))
    assert warned(lambda: list(dataset.resize((24, 32)).loader(2, output="numpy"))) == []
    assert "read as 8 bits" not in dataset.explain()


def test_jpeg_2000(tmp_path: Path) -> None:
    image = Image.fromarray(GREY)
    path = tmp_path / "a.jp2"
    try:
        image.save(path)
    except OSError:
        pytest.skip("Pillow has no JPEG 2000 here")
    assert feedline._engine.image_traits(path.read_bytes())[2] == ["16 bits"]
    Image.fromarray(np.zeros((24, 32, 3), np.uint8)).save(path)
    assert feedline._engine.image_traits(path.read_bytes())[2] == []
