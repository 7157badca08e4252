# SPDX-License-Identifier: Apache-2.0
"""Tables of samples: a CSV, TSV or JSONL file that names files, and a folder of images with such a table."""

from __future__ import annotations

import csv
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import training
from range_server import serving

import feedline
from feedline import packing, verifying

Epoch = list[tuple[bytes, ...]]


def photos_of(folder: Path) -> list[tuple[str, str]]:
    """Returns paths below `folder`, and classes, in torchvision's order."""
    return [(str(photo.relative_to(folder)), photo.parent.name) for photo in sorted(folder.glob("*/*.jpg"))]


def epoch(dataset: feedline.Dataset, batch_size: int = 4, **options: Any) -> Epoch:
    with dataset.loader(batch_size, seed=3, output="numpy", **options) as loader:
        return [tuple(field.tobytes() for field in batch) for batch in loader]


@pytest.fixture
def table(folder: Path, tmp_path: Path) -> Path:
    """Returns the photos of `folder` by name, with their classes as text."""
    (tmp_path / "photos").symlink_to(folder)
    path = tmp_path / "train.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerow(["photo", "class", "caption"])
        writer.writerows([f"photos/{name}", kind, f'a "{kind}",\nwhich is'] for name, kind in photos_of(folder))
    return path


def test_gives_the_batches_of_the_same_photos_in_a_folder(folder: Path, table: Path) -> None:
    expected = training(feedline.open(folder))
    dataset = training(feedline.open(table))
    assert (dataset.format, len(dataset), list(dataset.schema)) == ("table", 21, ["image", "label"])
    assert dataset.classes == expected.classes
    for options in ({}, {"shuffle": True}, {"shuffle": True, "num_workers": 3}, {"rank": 1, "world_size": 2}):
        assert epoch(dataset, **options) == epoch(expected, **options), options
    captions = feedline.open(table, fields=("label=class", "caption"))
    assert captions[0].caption == f'a "{expected.classes[0]}",\nwhich is'


def test_metadata_next_to_images_gives_all_its_columns(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "set" / "train"
    root.mkdir(parents=True)
    (root / "images").symlink_to(folder)
    lines = [
        {"file_name": f"images/{name}", "score": i / 4, "n": i, "words": [1, {"k": i}], "text": kind}
        for i, (name, kind) in enumerate(photos_of(folder))
    ]
    (root / "metadata.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    dataset = feedline.open(root).resize((8, 8))
    assert list(dataset.schema) == ["image", "score", "n", "words", "text"]
    with dataset.loader(21, output="numpy") as loader:
        (batch,) = loader
    np.testing.assert_array_equal(batch.score, np.arange(21) / 4)
    assert batch.score.dtype == np.float64
    np.testing.assert_array_equal(batch.n, np.arange(21))
    assert batch.words[3] == [1, {"k": 3}] and batch.text[20] == lines[20]["text"]
    assert len(feedline.open(tmp_path / "set")) == 21, "its only split"
    shutil.copytree(tmp_path / "set" / "train", tmp_path / "set" / "test")
    with pytest.raises(feedline.ConfigError, match=r"metadata in each of its folders \('test' and 'train'\)"):
        feedline.open(tmp_path / "set")


def test_any_text_comes_back_as_python_wrote_it(folder: Path, tmp_path: Path) -> None:
    draw = random.Random(4)
    letters = 'ab",\n\r\t;é😀 \\/{}[]'
    texts = ["".join(draw.choices(letters, k=draw.randrange(1, 12))) for _ in range(300)]
    name = str(folder / photos_of(folder)[0][0])
    for end, delimiter in ((".csv", ","), (".tsv", "\t")):
        with (tmp_path / f"x{end}").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
            writer.writerows([["file", "words"], *([name, text] for text in texts)])
    for ascii_only in (True, False):
        lines = [json.dumps({"file": name, "words": text}, ensure_ascii=ascii_only) for text in texts]
        (tmp_path / f"{ascii_only}.jsonl").write_text("\r\n".join(lines), encoding="utf-8", newline="")
    for path in ("x.csv", "x.tsv", "True.jsonl", "False.jsonl"):
        dataset = feedline.open(tmp_path / path, fields=("words",))
        assert [dataset[i].words for i in range(len(dataset))] == texts, path


def test_a_missing_file_is_named_with_its_line(table: Path) -> None:
    text = table.read_text(encoding="utf-8-sig")
    name = text.split("photos/", 8)[7].split(",")[0]
    table.write_text(text.replace(f"photos/{name}", "photos/none.jpg"))
    dataset = training(feedline.open(table))
    with pytest.raises(feedline.StorageError, match=r"line 14 of '.*train.csv', field 'image'") as caught:
        list(dataset.loader(4, output="numpy"))
    assert caught.value.record == 6 and caught.value.shard.endswith("photos/none.jpg")
    with dataset.loader(4, output="numpy", on_error="skip", error_budget=1) as loader:
        assert sum(len(batch.label) for batch in loader) == 20
    assert [found.code for found in feedline.inspect(table).findings] == ["missing_file", "unread_column"]


@pytest.mark.parametrize(
    "text, says",
    [
        ("photo,label\na.jpg\n", "line 2 has 1 cells, but the first line names 2 columns"),
        ("photo,label\na.jpg,1,2\n", "line 2 has 3 cells"),
        ('photo,label\n"a.jpg,1\n', "line 2 has a quote without an end"),
        ("", "the table is empty"),
    ],
)
def test_a_damaged_table_is_an_error_of_opening(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(feedline.DataError, match=says) as caught:
        feedline.open(path)
    assert caught.value.shard == str(path)
    assert [found.code for found in feedline.inspect(path).findings] == ["damaged_table"]


def test_from_a_server_the_batches_are_the_same(folder: Path, tmp_path: Path) -> None:
    lines = "".join(f"{name},{kind}\n" for name, kind in photos_of(folder))
    (folder / "train.csv").write_text("photo,class\n" + lines)
    (folder / "metadata.csv").write_text("file_name,label\n" + lines)
    try:
        expected = epoch(training(feedline.open(folder / "train.csv")), shuffle=True)
        with serving(folder) as server:
            dataset = training(feedline.open(server.url("train.csv")))
            assert dataset.format == "table" and epoch(dataset, shuffle=True) == expected
            beside = training(feedline.open(server.url(""), format="table"))
            assert epoch(beside, shuffle=True) == expected
    finally:
        (folder / "train.csv").unlink()
        (folder / "metadata.csv").unlink()


def test_is_packed_verified_and_inspected(folder: Path, table: Path, tmp_path: Path) -> None:
    packing.pack(table, tmp_path / "shards")
    packed = feedline.open(str(next((tmp_path / "shards").glob("*.tar"))))
    assert epoch(training(packed)) == epoch(training(feedline.open(folder)))
    found = feedline.inspect(table)
    assert (found.format, found.samples) == ("table", 21)
    assert [finding.code for finding in found.findings] == ["unread_column"]
    report = verifying.verify(table, decode=True)
    assert (report.format, report.samples, report.order_exact) == ("table", 21, True)
    assert not [finding for finding in report.findings if finding.severity == "error"]
