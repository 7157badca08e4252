# SPDX-License-Identifier: Apache-2.0
"""A folder of classes gives each file as it is when it is read: gone, cut or another one since it was opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import made_data
import numpy as np
import pytest

import feedline

GONE, EMPTY, REPLACED, AS_IT_WAS = "apple/001.png", "birch/002.png", "cedar/003.png", "cedar/004.png"
COLOUR = {"apple": 10, "birch": 60, "cedar": 110}  # of all pixels, plus the number in the name
REPLACED_BY = 250


def one_colour(value: int) -> bytes:
    return made_data.encoded(np.full((20, 24, 3), value, np.uint8), "PNG")


def colour_of(key: str) -> int:
    return COLOUR[key[:5]] + int(key[6:9])


@pytest.fixture
def changed(tmp_path: Path) -> feedline.Dataset:
    """A dataset three files of which changed after it was opened, and after a first read of each."""
    root = tmp_path / "photos"
    for name in COLOUR:
        (root / name).mkdir(parents=True)
        for number in range(8):
            key = f"{name}/{number:03}.png"
            (root / key).write_bytes(one_colour(colour_of(key)))
    dataset = feedline.open(root).center_crop(8)
    assert [dataset[index_of(key)].image[0, 0, 0] for key in (GONE, REPLACED)] == [colour_of(GONE), colour_of(REPLACED)]
    (root / GONE).unlink()
    (root / EMPTY).write_bytes(b"")
    (root / REPLACED).write_bytes(one_colour(REPLACED_BY))
    return dataset


def index_of(key: str) -> int:
    return 8 * list(COLOUR).index(key[:5]) + int(key[6:9])


def test_one_sample_is_read_as_it_is(changed: feedline.Dataset) -> None:
    with pytest.raises(feedline.StorageError, match=GONE) as gone:
        changed[index_of(GONE)]
    assert "no such file" in str(gone.value).lower()
    with pytest.raises(feedline.DataError, match=EMPTY) as empty:
        changed[index_of(EMPTY)]
    assert "empty" in str(empty.value)
    image, label = changed[index_of(REPLACED)]
    assert np.all(np.asarray(image) == REPLACED_BY) and label == 2
    assert np.all(np.asarray(changed[index_of(AS_IT_WAS)].image) == colour_of(AS_IT_WAS))


@pytest.mark.parametrize("mode", ["never", "always", "threads"])
def test_a_loader_gives_what_is_there_and_names_what_is_not(
    changed: feedline.Dataset, force: Callable[..., None], mode: str
) -> None:
    force(read_ahead=mode)
    with changed.loader(4, num_workers=2, on_error="skip", output="numpy") as loader:
        for _ in range(2):
            colours = sorted(int(pixel) for batch in loader for pixel in batch.image[:, 0, 0, 0])
            keys = [f"{name}/{number:03}.png" for name in COLOUR for number in range(8)]
            left = [colour_of(key) for key in keys if key not in (GONE, EMPTY, REPLACED)]
            assert colours == sorted([*left, REPLACED_BY])
            assert {bad.key: bad.stage for bad in loader.errors} == {GONE: "storage", EMPTY: "format"}


@pytest.mark.parametrize("mode", ["never", "always"])
def test_without_skipping_the_first_of_them_ends_the_epoch_by_its_name(
    changed: feedline.Dataset, force: Callable[..., None], mode: str
) -> None:
    force(read_ahead=mode)
    with changed.loader(4, num_workers=2, output="numpy") as loader, pytest.raises(feedline.StorageError, match=GONE):
        list(loader)
