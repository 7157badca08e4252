# SPDX-License-Identifier: Apache-2.0
"""ds[i], ds.schema and iteration need no common size; the error of a loader lists the ways to get batches."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline

Image = pytest.importorskip("PIL.Image")

SIZES = [(10 + k, 12 + 2 * k) for k in range(9)]


def photos(root: Path) -> feedline.Dataset:
    for k, size in enumerate(SIZES):
        folder = root / ("cat", "dog")[k > 4]
        folder.mkdir(exist_ok=True)
        Image.fromarray(np.full((*size, 3), 20 * k, np.uint8)).save(folder / f"{k}.png")
    return feedline.open(str(root))


def shard(path: Path, members: list[dict[str, bytes]]) -> str:
    with tarfile.open(path, "w") as tar:
        for k, sample in enumerate(members):
            for name, content in sample.items():
                info = tarfile.TarInfo(f"{k:04d}.{name}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return str(path)


def npy(array: np.ndarray[Any, Any]) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def png(array: np.ndarray[Any, Any]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(array).save(out, "PNG")
    return out.getvalue()


def test_photos_of_any_size(tmp_path: Path) -> None:
    dataset = photos(tmp_path)
    assert [np.asarray(image).shape for image, _ in dataset] == [(3, *size) for size in SIZES]
    assert dataset.schema["image"].shape == (3, -1, -1)
    assert "incomplete for batches" in dataset.explain()
    assert [np.asarray(dataset.resize(8)[k][0]).shape for k in (0, 8)] == [(3, 8, 9), (3, 8, 12)]
    assert dataset.draw(0) == []


def test_masks_of_any_size(tmp_path: Path) -> None:
    members = [{"jpg": png(np.zeros((*s, 3), np.uint8)), "seg.png": png(np.ones(s, np.uint8))} for s in SIZES]
    dataset = feedline.open(shard(tmp_path / "a.tar", members), fields=("jpg", "seg.png:mask"))
    assert [np.asarray(dataset[k][1]).shape for k in range(9)] == SIZES
    assert dataset.schema["seg.png"].shape == (-1, -1)


def test_a_loader_names_the_ways_to_batches(tmp_path: Path) -> None:
    dataset = photos(tmp_path)
    with pytest.raises(feedline.ConfigError, match=r'resize\(\(height, width\)\).*collate\("list"\)'):
        dataset.loader(8, output="numpy")
    batch = next(iter(dataset.collate("list").loader(8, output="numpy")))
    assert [image.shape for image in batch[0]] == [(3, *size) for size in SIZES[:8]]


def test_stacked_views_are_not_reported_of_lists(tmp_path: Path) -> None:
    dataset = photos(tmp_path)
    view = feedline.chain().random_horizontal_flip()
    with pytest.raises(feedline.ConfigError) as caught:
        dataset.views(crops=(view, 2)).loader(2, output="numpy")
    assert "collate" not in str(caught.value)


def test_arrays_of_other_shapes_than_the_first(tmp_path: Path) -> None:
    arrays = [np.ones((n, 4), np.float32) for n in (2, 0, 5)]
    path = shard(tmp_path / "a.tar", [{"npy": npy(a), "cls": b"1"} for a in arrays])
    dataset = feedline.open(path, fields=("npy", "cls"))
    assert [np.asarray(dataset[k].npy).shape for k in range(3)] == [(2, 4), (0, 4), (5, 4)]
    with pytest.raises(feedline.DataError, match=r"\(0, 4\).*\(2, 4\)") as caught:
        list(dataset.loader(3, output="numpy"))
    assert caught.value.key == "0001"


def test_what_a_function_gives_may_differ(tmp_path: Path) -> None:
    dataset = photos(tmp_path).map(lambda image: image[:, ::2], "image")
    assert [np.asarray(image).shape for image, _ in dataset] == [(3, (h + 1) // 2, w) for h, w in SIZES]


def test_a_damaged_sample_is_named(tmp_path: Path) -> None:
    photos(tmp_path)
    (tmp_path / "cat" / "0.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(9))
    with pytest.raises(feedline.DataError) as caught:
        feedline.open(str(tmp_path))[0]
    assert caught.value.key == "cat/0.png" and caught.value.stage == "decode"
