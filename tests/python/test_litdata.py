# SPDX-License-Identifier: Apache-2.0
"""LitData's datasets, written like LitData's writer does: the batches of the same photos in a folder, every kind of
value, and errors that name damage.
"""

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
    rows = [row.tolist() for row in batch.f]
    assert (rows[0], rows[3]) == ([0, 0, 0, 0], [0, 1, 2, 3])


def test_tokens_are_documents(tmp_path: Path) -> None:
    source = made_litdata.tokens(tmp_path / "t", [np.arange(3), np.arange(5) + 10])
    (batch,) = feedline.open(source).collate("list", fields="tokens").loader(2, output="numpy")
    assert [row.tolist() for row in batch.tokens] == [[0, 1, 2], [10, 11, 12, 13, 14]]


def blocks_of(documents: list[np.ndarray[Any, Any]], chunks: int, block: int) -> list[list[int]]:
    """Returns the items of LitData's TokensLoader, calculated like it does: whole blocks of each chunk, across
    documents.
    """
    blocks = []
    for number in range(chunks):
        share = documents[number * len(documents) // chunks : (number + 1) * len(documents) // chunks]
        line = np.concatenate(share).tolist()
        blocks += [line[i * block : (i + 1) * block] for i in range(len(line) // block)]
    return blocks


@pytest.mark.parametrize(("dtype", "number"), [("int64", 18), ("uint16", 20), ("int32", 16), ("uint8", 11)])
def test_windows_of_tokens_are_the_items_of_its_loader(tmp_path: Path, dtype: str, number: int) -> None:
    documents = [(np.arange(n) * 3 + n).astype(dtype) for n in (7, 1, 30, 12, 4, 55, 9, 2)]
    source = made_litdata.tokens(tmp_path / "t", documents, number, chunks=3)
    opened = feedline.open(source)
    for block in (2, 5, 16, 40):
        wanted = blocks_of(documents, 3, block)
        dataset = opened.windows(block - 1, stride=block, memory=0)
        assert len(dataset) == len(wanted)
        assert [[*one.x.tolist(), int(one.y[-1])] for one in dataset] == wanted, block
        assert all(one.y.tolist() == block[1:] for one, block in zip(dataset, wanted, strict=True))
    loader = opened.windows(4, stride=5, output_dtype="int32").loader(6, shuffle=True, seed=1, output="numpy")
    seen = [[*x.tolist(), int(y[-1])] for batch in loader for x, y in zip(batch.x, batch.y, strict=True)]
    assert sorted(seen) == sorted(blocks_of(documents, 3, 5))
    also = feedline.tokens([source / "index.json", source], window=4, stride=5, dtype=dtype)
    assert len(also) == 2 * len(seen)


def test_windows_of_what_has_none_are_refused(tmp_path: Path, photos: Path) -> None:
    documents = [np.arange(20), np.arange(30)]
    source = made_litdata.tokens(tmp_path / "t", documents, 18, chunks=2)
    opened = feedline.open(source)
    refused = [
        (lambda: feedline.open(photos).windows(3), "is not an index of LitData's TokensLoader"),
        (lambda: opened.map(np.sort, fields="tokens").windows(3), "windows\\(\\) follows.*call windows\\(\\) first"),
        (lambda: opened.subset([0]).windows(3), "is a subset"),
        (lambda: opened.windows(3, dtype="int32"), "the dataset sets dtype; omit dtype="),
        (lambda: feedline.tokens(source, window=3, dtype="uint16"), "contains int64, not uint16"),
        (lambda: opened.windows(300), "301 tokens"),
        (
            lambda: feedline.tokens(made_litdata.tokens(tmp_path / "f", documents, 1), window=3),
            "not supported as tokens",
        ),
        (
            lambda: feedline.tokens(made_litdata.tokens(tmp_path / "z", documents, 18, compression="zstd"), window=3),
            "have a compression .zstd., which is not supported",
        ),
    ]
    for call, words in refused:
        with pytest.raises(feedline.ConfigError, match=words):
            call()
    path = source / "chunk-0-1.bin"
    content = path.read_bytes()
    for damaged in (content[:-8], content + bytes(8), b"\x02" + content[1:], b""):
        path.write_bytes(damaged)
        with pytest.raises(feedline.DataError, match="chunk of 1 documents of 240 bytes after 12") as raised:
            opened.windows(3)
        assert raised.value.shard == str(path)
    path.unlink()
    with pytest.raises(feedline.StorageError, match=r"chunk-0-1\.bin: No such file"):
        opened.windows(3)


def test_lists_give_the_fields_that_all_have(tmp_path: Path) -> None:
    first = made_litdata.write(tmp_path / "a", {"n": "int", "t": "str"}, [{"n": i, "t": "a"} for i in range(3)])
    second = made_litdata.write(tmp_path / "b", {"t": "str", "n": "int"}, [{"n": 3, "t": "b"}])
    third = made_litdata.write(tmp_path / "c", {"n": "int"}, [{"n": 4}])
    both = feedline.open([first, second], format="litdata")
    assert [(int(one.n), one.t) for one in map(both.__getitem__, range(4))] == [(0, "a"), (1, "a"), (2, "a"), (3, "b")]
    all_three = feedline.open([first, second, third], fields="n", format="litdata")
    assert [int(all_three[i].n) for i in range(5)] == list(range(5))
    with pytest.raises(feedline.ConfigError, match=r"c/chunk-0-0.bin': the first shard's column 't' is missing"):
        feedline.open([first, third], format="litdata")


def test_encrypted_datasets_are_refused(tmp_path: Path) -> None:
    source = made_litdata.write(tmp_path / "x", {"a": "int"}, [{"a": 1}], encryption={"algorithm": "fernet"})
    with pytest.raises(feedline.ConfigError, match="the dataset is encrypted"):
        feedline.open(source)


def test_damage_is_named(photos: Path) -> None:
    path = photos / "chunk-0-1.bin"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(
        feedline.DataError, match=r"sample 7 is at byte \d+, which is past the end of the shard's \d+ bytes"
    ) as raised:
        training(feedline.open(photos))[7]
    assert raised.value.shard == str(path)
    assert [one.code for one in feedline.inspect(photos).findings if one.severity == "error"] == ["damaged_shard"]
