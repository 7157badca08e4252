# SPDX-License-Identifier: Apache-2.0
"""Columns of numbers in CSV, JSONL and Parquet: cells that are not numbers never become class numbers unnoticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline


def table(folder: Path, cells: list[str], name: str = "t.csv") -> Path:
    """A table of texts and labels, with the label cells as written."""
    path = folder / name
    path.write_text("text,label\n" + "".join(f"t{i},{cell}\n" for i, cell in enumerate(cells)))
    return path


def labels(path: Path, spec: str = "label:value", **options: Any) -> list[Any]:
    return [sample.label for sample in feedline.open(path, fields=("text", spec), **options)]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        ([" 7", "3 ", " 12 "], [7, 3, 12]),
        (["+7", "-3", "007"], [7, -3, 7]),
        (["1.0", "2", "3e2"], [1, 2, 300]),
        (['"7"', '"3"', "12"], [7, 3, 12]),
        (["9223372036854775807", "-9223372036854775808"], [2**63 - 1, -(2**63)]),
    ],
)
def test_numbers_as_pandas_reads_them(tmp_path: Path, cells: list[str], numbers: list[int]) -> None:
    assert labels(table(tmp_path, cells)) == numbers


@pytest.mark.parametrize("odd", ["cat", "0x10", "1,000", "7;8", "--", "True"])
@pytest.mark.parametrize("spec", ["label:value", "label"])
def test_a_cell_that_is_not_a_number_is_named(tmp_path: Path, odd: str, spec: str) -> None:
    path = table(tmp_path, ["7", f'"{odd}"', "3"])
    with pytest.raises(
        feedline.DataError, match=rf"line 3 has '{odd}' in the column 'label'.*line 2.*:class'"
    ) as caught:
        labels(path, spec)
    assert caught.value.shard == str(path) and caught.value.record == 1 and caught.value.key == "00000001"
    assert labels(path, "label=label:class") == [1, 2, 0] if odd == "cat" else True
    assert labels(path, "label:text") == ["7", odd, "3"]


def test_the_file_of_the_cell_is_named(tmp_path: Path) -> None:
    table(tmp_path, ["1", "2"], "a.csv")
    second = table(tmp_path, ["3", "x"], "b.csv")
    with pytest.raises(feedline.DataError, match="line 3 has 'x'") as caught:
        labels(tmp_path)
    assert caught.value.shard == str(second) and caught.value.record == 3


def test_class_names_that_look_like_numbers(tmp_path: Path) -> None:
    dataset = feedline.open(table(tmp_path, ["7", "cat", "10"]), fields=("text", "label:class"))
    assert dataset.classes == ["10", "7", "cat"] and [sample.label for sample in dataset] == [1, 2, 0]
    assert labels(table(tmp_path, ["dog", "cat", "dog"])) == [1, 0, 1]


@pytest.mark.parametrize("name", ["NA", "N/A", "null", "None", "", " ", '""', "<NA>"])
def test_missing_values_follow_missing(tmp_path: Path, name: str) -> None:
    path = table(tmp_path, ["7", name, "3"])
    with pytest.raises(feedline.DataError, match=r"line 3 .*nothing in the column 'label'"):
        labels(path)
    assert labels(path, missing="skip") == [7, 3]
    assert labels(path, missing="none") == [7, None, 3]
    assert labels(path, "label", missing="none") == [7, None, 3]


def test_names_of_missing_values_among_texts_are_texts(tmp_path: Path) -> None:
    path = table(tmp_path, ["NA", "EU", "None"])
    assert labels(path, "label:text") == ["NA", "EU", "None"]
    assert feedline.open(path, fields=("text", "label:value")).classes == ["EU", "NA", "None"]


@pytest.mark.parametrize("cell", ["9223372036854775808", "-9223372036854775809", "1e300"])
def test_integers_of_more_than_64_bits(tmp_path: Path, cell: str) -> None:
    path = table(tmp_path, ["7", cell])
    with pytest.raises(feedline.DataError, match=rf"line 3 has '{cell}' in the column 'label'.*64-bit integers"):
        labels(path)
    assert labels(path, "label:array")[1] == float(cell)
    if cell.lstrip("-").isdigit():
        (tmp_path / "ids.csv").write_text(f"id\n7\n{cell}\n")
        assert [sample.id for sample in feedline.open(tmp_path / "ids.csv")] == ["7", cell], "float64 would round it"


def test_numbers_with_a_fraction_are_not_labels(tmp_path: Path) -> None:
    with pytest.raises(feedline.ConfigError, match=r"'1\.5' in line 3.*not integers|not integers.*'1\.5' in line 3"):
        labels(table(tmp_path, ["1", "1.5"]))


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    def write(*values: object) -> Path:
        path.write_text("".join(json.dumps({"text": "t", "label": value}) + "\n" for value in values))
        return path

    for odd in ("cat", "8", "NA", ""):
        with pytest.raises(feedline.DataError, match=rf"line 2 has '{odd}' in the column 'label'"):
            labels(write(7, odd))
    assert labels(write("cat", "8"), "label:class") == [1, 0]
    assert labels(write(7, None, 3.0), missing="none") == [7, None, 3]


def test_text_columns_of_parquet(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"text": ["a", "b"], "label": [" 7", "NA"]}), tmp_path / "t.parquet")
    dataset = feedline.open(tmp_path / "t.parquet", fields=("text", "label:value"))
    assert dataset[0].label == 7
    with pytest.raises(feedline.DataError, match=r"field 'label': the column 'label' has 'NA'.*label:text") as caught:
        dataset[1]
    assert caught.value.record == 1


def test_missing_integers_are_none_in_single_samples_and_lists(tmp_path: Path) -> None:
    dataset = feedline.open(table(tmp_path, ["7", "", "3"]), missing="none")
    assert dataset[1].label is None and dataset[0].label == 7
    assert [sample.label for sample in dataset] == [7, None, 3]
    with pytest.raises(feedline.ConfigError, match=r"'label'.*collate\(\"list\", fields=\[\"label\"\]\)"):
        dataset.loader(3, output="numpy")
    for listed in (dataset.collate("list", fields=["label"]), dataset.collate("list")):
        (batch,) = listed.loader(3, output="numpy")
        assert [None if value is None else int(value) for value in batch.label] == [7, None, 3]
    mapped = dataset.map(lambda label: np.int64(-1 if label is None else label), fields="label")
    (batch,) = mapped.loader(3, output="numpy")
    assert batch.label.tolist() == [7, -1, 3]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_batches_have_the_numbers_of_single_samples(tmp_path: Path, name: str) -> None:
    rows = [{"i": 3 * i, "x": i / 8, "c": ["cat", "dog"][i % 2]} for i in range(1000)]
    path = tmp_path / name
    if name.endswith(".csv"):
        path.write_text("i,x,c\n" + "".join(f"{row['i']},{row['x']},{row['c']}\n" for row in rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = feedline.open(path, fields=("i", "x", "c:class"))
    for source, options in (
        (dataset, {}),
        (dataset, {"shuffle": True, "world_size": 3, "rank": 1}),
        (dataset.subset(range(900, 100, -7)), {"shuffle": True}),
    ):
        with source.loader(48, output="numpy", **options) as loader:
            i, x, c = (np.concatenate(field) for field in zip(*map(tuple, loader), strict=True))
        assert (i.dtype, x.dtype, c.dtype) == (np.int64, np.float64, np.int64)
        assert len(i) == (334 if "rank" in options else len(source))
        assert np.array_equal(x, i / 24) and np.array_equal(c, i // 3 % 2)
        assert (sorted(i) == list(i)) == (not options)
    with dataset.loader(64, shuffle=True, output="numpy") as loader:
        batches = iter(loader)
        whole = [np.array(next(batches)[0]) for _ in range(5)]
        state = loader.state_dict()
        whole += [np.array(batch[0]) for batch in batches]
    with dataset.loader(64, shuffle=True, output="numpy") as loader:
        loader.load_state_dict(state)
        assert np.array_equal(np.concatenate([batch[0] for batch in loader]), np.concatenate(whole[5:]))


def test_a_missing_number_is_an_error_of_its_row_only(tmp_path: Path) -> None:
    path = table(tmp_path, ["" if i == 700 else str(i) for i in range(1000)])
    dataset = feedline.open(path, fields="label:value")
    with dataset.loader(100, on_error="skip", error_budget=1, output="numpy") as loader:
        got = np.concatenate([batch[0] for batch in loader])
        assert [error.record for error in loader.errors] == [700]
    assert sorted(got) == [i for i in range(1000) if i != 700]
