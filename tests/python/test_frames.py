# SPDX-License-Identifier: Apache-2.0
"""feedline.table: datasets of data frames and of tables in files."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy
import pytest

import feedline
from feedline.errors import ConfigError, DataError, StorageError

FORMS = ("dict", "pandas", "polars", "arrow", "csv", "jsonl", "parquet")


@pytest.fixture
def columns(folder: Path) -> dict[str, list[Any]]:
    paths = sorted(folder.rglob("*.jpg"))[:9]
    return {
        "path": [str(path.relative_to(folder)) for path in paths],
        "species": [path.parent.name for path in reversed(paths)],
        "x": [i / 2 for i in range(9)],
        "y": list(range(9)),
        "tags": ["a b", "", "c", "a", "b", "", "c a", "a", "b"],
    }


def in_form(form: str, columns: dict[str, list[Any]], folder: Path) -> Any:
    """Returns the table as a frame, or the path of a file with it in `folder`."""
    if form == "dict":
        return columns
    if form == "csv":
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        (folder / "t.csv").write_text("\n".join(lines) + "\n")
        return folder / "t.csv"
    if form == "jsonl":
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(folder / "t.jsonl")
    if form == "pandas":
        return pytest.importorskip("pandas").DataFrame(columns)
    if form == "polars":
        return pytest.importorskip("polars").DataFrame(columns)
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(columns)
    if form == "arrow":
        return pyarrow.concat_tables([table.slice(0, 4), table.slice(4)])  # several chunks, with offsets
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, folder / "t.parquet", row_group_size=4)
    return folder / "t.parquet"


@pytest.mark.parametrize("form", FORMS)
def test_a_table_is_the_same_dataset_in_every_form(columns, folder, tmp_path, form):
    expected = feedline.table(columns, image="path", label="species", root=folder)
    given = feedline.table(in_form(form, columns, tmp_path), image="path", label="species", root=folder)
    assert given.classes == ["apple", "birch"]
    assert given.labels.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert given.fingerprint == expected.fingerprint
    assert [name for name, *_ in given.unopened] == ["x", "y", "tags"]
    numpy.testing.assert_array_equal(given[4].image, feedline.open(folder)[4].image)
    again = pickle.loads(pickle.dumps(given.resize((8, 8))))
    numpy.testing.assert_array_equal(again[8].image, given.resize((8, 8))[8].image)


@pytest.mark.parametrize("form", FORMS)
def test_targets_and_tags(columns, folder, tmp_path, form):
    source = in_form(form, columns, tmp_path)
    given = feedline.table(
        source, image="path", target=("x", "y"), multi_label="tags", separator=" ", root=folder
    ).resize((8, 8))
    batch = next(iter(given.loader(batch_size=4, output="numpy")))
    assert batch.target.dtype == numpy.float32
    assert batch.target.tolist() == [[0, 0], [0.5, 1], [1, 2], [1.5, 3]]
    assert given.classes == ["a", "b", "c"]
    assert batch.label.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0]]
    scalar = feedline.table(source, image="path", target="y", root=folder)
    assert scalar.schema["target"].shape == ()
    assert scalar.schema["target"].dtype == "float32"


@pytest.mark.parametrize("form", FORMS)
def test_a_template_makes_paths(columns, folder, tmp_path, form):
    given = {"number": [2, 0, 1], "name": ["apple", "birch", "crow"]}
    source = in_form(form, given, tmp_path)
    padded = feedline.table(source, template="{name}/{number:03d}.jpg", root=folder)
    numpy.testing.assert_array_equal(padded[2].image, feedline.open(folder)[7 + 7 + 1].image)
    plain = feedline.table(source, template="{name}/00{number}.jpg", label="name", root=folder)
    assert plain[0].label == 0
    numpy.testing.assert_array_equal(plain[2].image, padded[2].image)
    with pytest.raises(ConfigError, match="there is no column 'id'; the columns are number, name"):
        feedline.table(source, template="{id}.jpg", root=folder)


@pytest.mark.parametrize("form", FORMS)
def test_fields_are_columns(columns, folder, tmp_path, form):
    source = in_form(form, columns, tmp_path)
    given = feedline.table(
        source, image="path", root=folder, fields=("y", "image", "kind=species:class", "note=path:text")
    )
    assert given[3]._fields == ("y", "image", "kind", "note")
    assert given[3].y == 3
    assert given[3].kind == 0
    assert given[3].note == columns["path"][3]


def test_paths_of_a_file_begin_at_its_folder_and_the_image_column_is_found(columns, folder, tmp_path):
    photos = shutil.copytree(folder, tmp_path / "photos")  # other tests count the files of `folder`
    given = feedline.table(in_form("csv", {"who": columns["species"], "where": columns["path"]}, photos))
    numpy.testing.assert_array_equal(given[8].image, feedline.open(folder)[8].image)


def test_rows_of_a_filtered_frame_are_positions_with_their_index(columns, folder, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns)
    frame.loc[7, "path"] = "gone.jpg"
    part = feedline.table(frame[frame.y > 3], image="path", root=folder)
    with pytest.raises(StorageError, match=r"row 3 \(index '7'\), column 'image'"):
        part[3]
    named = feedline.table(frame.set_index("species", drop=False).iloc[5:], image="path", label="y", root=folder)
    with pytest.raises(StorageError, match=r"row 2 \(index 'apple'\), column 'image'"):
        named[2]
    shutil.copytree(folder, tmp_path / "cut")
    cut = tmp_path / "cut" / frame.path[6]
    cut.write_bytes(cut.read_bytes()[:40])
    damaged = feedline.table(frame[frame.y > 3], image="path", root=tmp_path / "cut")
    with pytest.raises(DataError, match=r"record 2, index '6', stage decode"):
        damaged[2]
    frame.loc[8, "x"] = float("nan")
    with pytest.raises(ConfigError, match=r"row 4 \(index 8\) of the column 'x' has no value"):
        feedline.table(frame[frame.y > 3], image="path", label="x", root=folder)


def test_columns_of_pandas_types(columns, folder):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns)
    frame["kind"] = pandas.Categorical(frame.species, categories=["crow", "birch", "apple"])
    frame["nullable"] = frame.y.astype("Int64")
    frame["text"] = frame.path.astype("string")
    given = feedline.table(frame, image="text", label="kind", root=folder, fields=("image", "label", "nullable"))
    assert given.classes == ["crow", "birch", "apple"]
    assert given.class_counts() == {"crow": 0, "birch": 2, "apple": 7}
    assert given[2].nullable == 2
    frame.loc[5, "nullable"] = pandas.NA
    with pytest.raises(ConfigError, match="row 5 of the column 'nullable' has no value"):
        feedline.table(frame, image="text", label="nullable", root=folder)
    frame.loc[6, "kind"] = None
    with pytest.raises(ConfigError, match="row 6 of the column 'kind' has no value"):
        feedline.table(frame, image="text", label="kind", root=folder)


def test_lists_of_paths_and_tags_in_columns(columns, folder):
    polars = pytest.importorskip("polars")
    paths = columns["path"]
    frame = polars.DataFrame({"views": [paths[:2], paths[2:4]], "tags": [["x"], None]})
    given = feedline.table(frame, image="views", multi_label="tags", root=folder)
    assert given[0]._fields == ("image_0", "image_1", "label")
    assert given.targets("label").tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"image": "pth"}, "image: there is no column 'pth'; the columns are path, species, x, y, tags"),
        ({"image": "y"}, "row 0 of the column 'y' is 0, which is not a path"),
        ({"image": "species"}, "row 0 of the column 'species' is 'birch', which is not the path of a file"),
        ({"image": "path", "template": "{path}"}, "not both"),
        ({"template": "{path"}, "not a valid format"),
        ({"template": "a.jpg"}, "does not contain a column name"),
        ({"template": 3}, "template must be text such as '{image_id}.jpg', not 3"),
        (
            {"template": "{}.jpg"},
            "there is no column ''; the columns are path, species, x, y, tags; write a column's name in the braces",
        ),
        ({"template": "{path!x}"}, "the conversion '!x' of 'path' is not one of !s, !r, !a"),
        (
            {"image": "path", "target": ("x", "species")},
            "row 0 of the column 'species' is 'birch', which is not a number; targets must be numbers",
        ),
        ({"image": "path", "fields": "age"}, "there is no column 'age'"),
        ({"image": "path", "fields": ("image", "x:film")}, "the kind 'film' of 'x'"),
    ],
)
def test_wrong_arguments_name_what_is_wrong(columns, folder, arguments, message):
    with pytest.raises(ConfigError, match=message):
        feedline.table(columns, root=folder, **arguments)


def test_floats_of_integers_are_not_parts_of_paths(columns, folder):
    columns = {**columns, "id": [float(i) for i in range(9)]}
    with pytest.raises(ConfigError, match=r"row 0 of the column 'id' is 0.0, .*; convert .* or write '\{id:.0f\}'"):
        feedline.table(columns, template="{id}.jpg", root=folder)
    given = feedline.table(columns, template="{id:.0f}.jpg", root=folder)
    with pytest.raises(StorageError, match=r"3\.jpg"):
        given[3]
    assert feedline.table({**columns, "id": [0.5] * 9}, template="{id}.jpg", root=folder)


def test_conversions_in_templates_apply(columns, folder):
    with pytest.raises(StorageError, match=r"'birch'\.jpg"):
        feedline.table(columns, template="{species!r}.jpg", root=folder)[0]


@pytest.mark.parametrize("form", ["pandas", "arrow"])
def test_two_columns_of_one_name_are_refused(form):
    if form == "pandas":
        table = pytest.importorskip("pandas").DataFrame([["a.jpg", 1, 2]], columns=["path", "label", "label"])
    else:
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.Table.from_arrays([["a.jpg"], [1], [2]], ["path", "label", "label"])
    with pytest.raises(ConfigError, match="two columns are called 'label'"):
        feedline.table(table, image="path", label="label")


@pytest.mark.parametrize("role", ["image", "label"])
def test_damaged_text_of_arrow_is_refused(role):
    pyarrow = pytest.importorskip("pyarrow")
    offsets = pyarrow.py_buffer(numpy.array([0, 5, 2, 10], numpy.int32))
    damaged = pyarrow.StringArray.from_buffers(3, offsets, pyarrow.py_buffer(b"a.jpgb.jpg"))
    table = pyarrow.table({"path": ["a.jpg", "b.jpg", "c.jpg"], "bad": damaged})
    arguments = {"image": "bad"} if role == "image" else {"image": "path", "label": "bad"}
    with pytest.raises(DataError, match="the column 'bad': row 1: damaged Arrow text: bytes 5 to 2 of 10 bytes"):
        feedline.table(table, **arguments)


def test_other_sources_are_refused():
    with pytest.raises(ConfigError, match="not int"):
        feedline.table(3)


@pytest.mark.parametrize("form", FORMS)
def test_columns_that_are_not_fields_select_samples(columns, folder, tmp_path, form):
    columns["patient"] = [f"p{i // 2}" for i in range(9)]
    columns["age"] = [20 + i for i in range(9)]
    given = feedline.table(in_form(form, columns, tmp_path), image="path", label="species", root=folder).resize((8, 8))
    assert given[0]._fields == ("image", "label")
    assert given.targets("age").tolist() == columns["age"]
    assert given.targets("age").dtype == numpy.int64
    assert given.subset([7, 2]).targets("patient") == ["p3", "p1"]
    older = given.subset([8, 3, 5]).filter(lambda row: row["age"] > 23 and row["species"] in ("apple", "birch"))
    assert [older.key(i) for i in range(len(older))] == [given.key(8), given.key(5)]
    assert older[0]._fields == ("image", "label")
    for i in range(2):
        parts = given.split(k_fold=2, fold=i, groups="patient")
        assert not set(parts[0].targets("patient")) & set(parts[1].targets("patient"))
    one, two = given.split(0.5, by_class="patient")
    assert sorted(one.targets("age").tolist() + two.targets("age").tolist()) == columns["age"]
    if form not in ("csv", "jsonl", "parquet"):  # a file is read again
        with pytest.raises(ConfigError, match="there is no field 'age'"):
            pickle.loads(pickle.dumps(given)).targets("age")


def test_lists_in_parquet_are_images_and_tags(columns, folder, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pairs = [[path, columns["path"][0]] for path in columns["path"]]
    lists = pyarrow.table({"pair": pairs, "tags": [text.split() for text in columns["tags"]]})
    parquet.write_table(lists.slice(0, 5), tmp_path / "0.parquet", row_group_size=2)
    parquet.write_table(lists.slice(5), tmp_path / "1.parquet")
    given = feedline.table(str(tmp_path / "{0,1}.parquet"), image="pair", multi_label="tags", root=folder)
    assert given[7]._fields == ("image_0", "image_1", "label")
    assert given.class_counts() == {"a": 4, "b": 3, "c": 2}
    numpy.testing.assert_array_equal(given[7].image_0, feedline.files(columns["path"], root=folder)[7].image)
    assert pickle.loads(pickle.dumps(given)).fingerprint == given.fingerprint


def test_numbers_with_zeros_in_front_are_parts_of_paths(folder, tmp_path):
    for i, path in enumerate(sorted(folder.rglob("*.jpg"))[:3]):
        shutil.copy(path, tmp_path / f"{i:03d}.jpg")
    (tmp_path / "t.csv").write_text("id\n000\n001\n002\n")
    for template in ("{id}.jpg", "{id:03d}.jpg"):
        given = feedline.table(tmp_path / "t.csv", template=template)
        assert given[2].image.shape == feedline.files([tmp_path / "002.jpg"])[0].image.shape


def test_rows_of_a_filter_have_none_for_missing_text(columns, folder):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns | {"note": ["a", None, *"bcdefgh"], "score": [1.0, float("nan"), *range(7)]})
    rows = []
    given = feedline.table(frame, image="path", root=folder)
    given.filter(lambda row: rows.append(row) or True)
    assert rows[1]["note"] is None
    assert numpy.isnan(rows[1]["score"])
    assert rows[1]["path"] == columns["path"][1]
    with pytest.raises(ConfigError, match="groups: row 1 of the column 'note' has no value"):
        given.split(k_fold=2, fold=0, groups="note")
    with pytest.raises(ConfigError, match=r"by_class: the column 'x' holds numbers .float64., not integers or text"):
        given.split(k_fold=2, fold=0, by_class="x")


def test_a_file_that_changed_has_no_more_columns(columns, folder, tmp_path):
    source = in_form("csv", columns, tmp_path)
    given = feedline.table(source, image="path", root=folder)
    source.write_text(source.read_text() + "a.jpg,cat,1,2,b\n")
    with pytest.raises(DataError, match="has 10 rows now, but 9 when it was opened"):
        given.targets("y")
