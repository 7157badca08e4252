# SPDX-License-Identifier: Apache-2.0
"""``decode(fidelity="fast")``: the error of its pixels, when they are exact, and that no run uses it unnoticed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import photographs
import pytest
from PIL import Image

import feedline

SIDE = 64
SUBSAMPLINGS = ("4:2:0", "4:2:2", "4:4:4")


def _jpeg(photo: np.ndarray, **options: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(photo).save(stream, "JPEG", **options)
    return stream.getvalue()


def _folder(root: Path, files: list[bytes], suffix: str = ".jpg") -> Path:
    (root / "class").mkdir(parents=True)
    for i, data in enumerate(files):
        (root / "class" / f"{i:03d}{suffix}").write_bytes(data)
    return root


def _psnr(a: np.ndarray, b: np.ndarray) -> float:
    error = np.mean((a.astype(np.float64) - b.astype(np.float64)) ** 2)
    return float(10 * np.log10(255**2 / error)) if error else float("inf")


def _images(data: feedline.Dataset) -> list[np.ndarray]:
    return [data[i][0] for i in range(len(data))]


def _both(source: Path, side: int = SIDE, mode: str = "RGB") -> tuple[list[np.ndarray], list[np.ndarray]]:
    opened = feedline.open(source)
    exact, fast = (
        _images(opened.decode(mode, fidelity=fidelity).random_resized_crop(side).random_horizontal_flip())
        for fidelity in ("exact", "fast")
    )
    return exact, fast


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Crops of photos with sides of 256 to 640 pixels."""
    parts = [part for part in photographs.crops(120) if min(part.shape[:2]) >= 256]
    files = [_jpeg(part, quality=90, subsampling=SUBSAMPLINGS[i % 3]) for i, part in enumerate(parts)]
    return _folder(tmp_path_factory.mktemp("fast") / "photos", files)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_pixels_are_near_pillows(photos: Path, mode: str) -> None:
    exact, fast = _both(photos, mode=mode)
    errors = [_psnr(a, b) for a, b in zip(exact, fast, strict=True)]
    changed = [error for error in errors if np.isfinite(error)]
    assert len(changed) > len(errors) / 4, "hardly a crop was large enough for the fast way"
    assert np.mean(changed) > 44
    assert min(changed) > 34


def test_small_crops_are_exact(photos: Path) -> None:
    exact, fast = _both(photos, side=300)
    for a, b in zip(exact, fast, strict=True):
        np.testing.assert_array_equal(a, b)


def test_other_formats_are_exact(tmp_path: Path) -> None:
    parts = photographs.crops(8)
    png = io.BytesIO()
    Image.fromarray(parts[0]).save(png, "PNG")
    exact, fast = _both(_folder(tmp_path / "png", [png.getvalue()], ".png"), side=16)
    for a, b in zip(exact, fast, strict=True):
        np.testing.assert_array_equal(a, b)


def test_loader_gives_the_same_as_indexing(photos: Path) -> None:
    data = feedline.open(photos).decode(fidelity="fast").random_resized_crop(SIDE)
    with data.loader(batch_size=1, drop_last=False, output="numpy", num_workers=2) as loader:
        batches = [batch[0][0] for batch in loader]
    for got, expected in zip(batches, _images(data), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_damage_is_reported_as_without(photos: Path, tmp_path: Path) -> None:
    cut = next(photos.rglob("*.jpg")).read_bytes()
    source = _folder(tmp_path / "cut", [cut[: len(cut) // 2]])
    said = []
    for fidelity in ("exact", "fast"):
        with pytest.raises(feedline.DataError) as error:
            feedline.open(source).decode(fidelity=fidelity).resize((16, 16))[0]
        said.append(str(error.value))
    assert said[0] == said[1]


def test_explain_reports_it(photos: Path) -> None:
    data = feedline.open(photos).decode(fidelity="fast").random_resized_crop(SIDE)
    assert "fidelity fast" in data.explain()
    with data.loader(batch_size=2, output="numpy") as loader:
        assert "fidelity fast" in loader.explain()
    assert "fidelity" not in feedline.open(photos).random_resized_crop(SIDE).explain()


def test_a_run_does_not_continue_with_other_pixels(photos: Path) -> None:
    def loader(fidelity: str) -> feedline.Loader:
        return feedline.open(photos).decode(fidelity=fidelity).resize((8, 8)).loader(batch_size=2, output="numpy")

    with loader("fast") as fast, loader("fast") as again, loader("exact") as exact:
        state = fast.state_dict()
        again.load_state_dict(state)
        with pytest.raises(feedline.ConfigError, match=r'fidelity="fast".*now has decode\(fidelity="exact"\)'):
            exact.load_state_dict(state)
        before = exact.state_dict()
        del before["plan"]["fidelity"]  # of a version that supported only exact pixels
        exact.load_state_dict(before)
        with pytest.raises(feedline.ConfigError, match='fidelity="exact"'):
            fast.load_state_dict(before)


def test_wrong_words(photos: Path) -> None:
    with pytest.raises(feedline.ConfigError, match="fidelity"):
        feedline.open(photos).decode(fidelity="quick")
    with pytest.raises(feedline.ConfigError, match="decode: must be the first"):
        feedline.open(photos).resize(8).decode(fidelity="fast")
