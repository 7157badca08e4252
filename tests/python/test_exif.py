# SPDX-License-Identifier: Apache-2.0
"""Images turned by their EXIF orientation have the pixels of Pillow's exif_transpose, wherever an image is decoded, and
are as they are stored unless that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import photographs
import pytest
from PIL import Image, ImageOps

import feedline

ORIENTATION = 0x0112
KINDS = {"jpg": {"quality": 90}, "png": {}, "webp": {"lossless": True}, "tif": {}}


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One class folder; a photo for each orientation and kind."""
    root = tmp_path_factory.mktemp("turned") / "all"
    root.mkdir()
    photo = Image.open(photographs.files()[0]).convert("RGB").resize((91, 60))
    for number in range(1, 9):
        exif = Image.Exif()
        exif[ORIENTATION] = number
        for kind, options in KINDS.items():
            photo.save(root / f"{kind}_{number}.{kind}", exif=exif, **options)
    return root


@pytest.fixture(scope="module")
def upright(turned: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same images as Pillow turns them, without EXIF and without loss."""
    root = tmp_path_factory.mktemp("upright") / "all"
    root.mkdir()
    for file in turned.iterdir():
        ImageOps.exif_transpose(Image.open(file)).convert("RGB").save(root / f"{file.stem}.png", exif=b"")
    return root


def test_decode_image_turns_as_exif_transpose(turned: Path) -> None:
    for file in sorted(turned.iterdir()):
        data, image = file.read_bytes(), Image.open(file)
        plain, expected = image.convert("RGB"), ImageOps.exif_transpose(image).convert("RGB")
        assert np.array_equal(feedline.decode_image(data), plain), file.name
        assert np.array_equal(feedline.decode_image(data, apply_exif_orientation=True), expected), file.name
        box = (7, 11, 40, 52)
        got = feedline.decode_image(data, box, apply_exif_orientation=True)
        assert np.array_equal(got, expected.crop(box)), file.name
        grey = feedline.decode_image(data, mode="L", apply_exif_orientation=True)
        assert np.array_equal(grey[..., 0], ImageOps.exif_transpose(image).convert("L")), file.name


def batches(root: Path, *, turn: bool, views: bool = False, cached: bool = False, **options: Any) -> list[bytes]:
    dataset = feedline.open(root.parent).decode(apply_exif_orientation=turn)
    if cached:
        dataset = dataset.resize(48).cache("memory")
    if views:
        crop = feedline.chain().random_resized_crop(24).random_horizontal_flip()
        dataset = dataset.views(a=crop, b=crop)
    else:
        dataset = dataset.random_resized_crop(32).random_horizontal_flip()
    with dataset.loader(4, seed=5, shuffle=True, output="numpy", **options) as loader:
        return [field.tobytes() for _ in range(2) for batch in loader for field in batch]


@pytest.mark.parametrize("how", [{}, {"num_workers": 1}, {"views": True}, {"cached": True}])
def test_all_that_is_drawn_is_of_the_turned_image(turned: Path, upright: Path, how: dict[str, Any]) -> None:
    expected = batches(upright, turn=False, **how)
    assert batches(turned, turn=True, **how) == expected
    assert batches(turned, turn=False, **how) != expected


def test_fast_decoding_turns_too(turned: Path) -> None:
    """Turned images are decoded exactly; the others may be decoded at a part of their size."""
    for file in turned.glob("*_6.jpg"):
        dataset = feedline.open(turned.parent)
        index = [Path(dataset.key(i)).name for i in range(len(dataset))].index(file.name)
        fast, exact = (
            dataset.decode(fidelity=one, apply_exif_orientation=True).resize((16, 16))[index].image
            for one in ("fast", "exact")
        )
        assert np.array_equal(fast, exact)


def test_is_reported_and_is_part_of_the_plan(turned: Path) -> None:
    plain, applied = (
        feedline.open(turned.parent).decode(apply_exif_orientation=one).resize((8, 8)) for one in (False, True)
    )
    assert "apply_exif_orientation=True" in repr(applied) and "apply_exif" not in repr(plain)
    assert "turned as its EXIF orientation says" in applied.explain()
    with pytest.raises(feedline.ConfigError, match="apply_exif_orientation"):
        plain.decode(apply_exif_orientation="yes")  # type: ignore[arg-type]
