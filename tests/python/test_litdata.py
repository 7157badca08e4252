# SPDX-License-Identifier: Apache-2.0
"""LitData's datasets, written from what their writer does: the batches of the same photos in a folder, every kind of
value, and damage that is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_litdata
import numpy as np
import pytest
from conftest import training
from range_server import serving

import feedline
from feedline import verifying

Epoch = list[tuple[bytes, ...]]


@pytest.fixture
def photos(folder: Path, tmp_path: Path) -> Path:
    """The photos of `folder` in three chunks, in the same order."""
    return made_litdata.of_folder(folder, tmp_path / "lit", chunks=3)


def epoch(dataset: feedline.Dataset, batch_size: int = 4, **options: Any) -> Epoch:
    with dataset.loader(batch_size, seed=3, output="numpy", **options) as loader:
        return [tuple(field.tobytes() for field in batch) for batch in loader]


def test_gives_the_batches_of_the_same_photos_in_a_folder(folder: Path, photos: Path) -> None:
    wanted = training(feedline.open(folder))
    dataset = training(feedline.open(photos))
    assert (dataset.format, len(dataset), list(dataset.schema)) == ("litdata", 21, ["image", "label"])
    for options in ({}, {"shuffle": True, "num_workers": 3}, {"rank": 1, "world_size": 2}):
        assert epoch(dataset, **options) == epoch(wanted, **options), options
    with serving(photos.parent) as server:
        assert epoch(training(feedline.open(server.url("lit/index.json")))) == epoch(wanted)
    assert [one.code for one in verifying.verify(photos).findings] == []


def test_values_of_every_kind(tmp_path: Path) -> None:
    columns = {"a": "int", "b": "float", "c": "bool", "d": "str", "e": "tensor", "f": "no_header_tensor:17"}
    samples = [
        {"a": i, "b": i / 4, "c": i % 2, "d": f"s{i}", "e": np.full((2, 3), i, "f4"), "f": np.arange(i + 1)}
        for i in range(4)
    ]
    source = made_litdata.write(tmp_path / "x", columns, samples, chunks=2)
    (batch,) = feedline.open(source).collate("pad", fields="f").loader(4, output="numpy")
    np.testing.assert_array_equal(batch.a, np.arange(4))
    np.testing.assert_array_equal(batch.b, np.arange(4) / 4)
    np.testing.assert_array_equal(batch.c, [0, 1, 0, 1])
    assert list(batch.d) == ["s0", "s1", "s2", "s3"]
    np.testing.assert_array_equal(batch.e, [one["e"] for one in samples])
    assert batch.f[0].tolist() == [0, 0, 0, 0]
    assert batch.f[3].tolist() == [0, 1, 2, 3]


def test_tokens_are_documents(tmp_path: Path) -> None:
    source = made_litdata.tokens(tmp_path / "t", [np.arange(3), np.arange(5) + 10])
    (batch,) = feedline.open(source).collate("list", fields="tokens").loader(2, output="numpy")
    assert [row.tolist() for row in batch.tokens] == [[0, 1, 2], [10, 11, 12, 13, 14]]


def test_encrypted_datasets_are_refused(tmp_path: Path) -> None:
    source = made_litdata.write(tmp_path / "x", {"a": "int"}, [{"a": 1}], encryption={"algorithm": "fernet"})
    with pytest.raises(feedline.ConfigError, match="the dataset is encrypted"):
        feedline.open(source)


def test_damage_is_named(photos: Path) -> None:
    path = photos / "chunk-0-1.bin"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(feedline.DataError, match=r"sample 7 lies at byte \d+, which is behind its \d+ bytes") as raised:
        training(feedline.open(photos))[7]
    assert raised.value.shard == str(path)
    assert [one.code for one in feedline.inspect(photos).findings if one.severity == "error"] == ["damaged_shard"]
