# SPDX-License-Identifier: Apache-2.0
"""Lists of structs, lists of text and maps in Parquet and Arrow files, which are opened as JSON."""

import decimal
import pathlib
import random
from collections.abc import Callable
from typing import Any

import pytest
from range_server import serving

import feedline

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")

PART = pa.struct([("type", pa.string()), ("text", pa.string())])
MESSAGE = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),
        ("number", pa.int64()),
        ("small", pa.uint8()),
        ("real", pa.float64()),
        ("single", pa.float32()),
        ("flag", pa.bool_()),
        ("parts", pa.list_(PART)),
    ]
)
SCHEMA = pa.schema(
    [
        ("messages", pa.list_(MESSAGE)),
        ("tags", pa.list_(pa.string())),
        ("about", pa.struct([("turns", pa.large_list(pa.struct([("text", pa.large_string())])))])),
        ("pairs", pa.map_(pa.string(), pa.list_(pa.int32()))),
        ("deep", pa.list_(pa.list_(pa.list_(pa.string())))),
        ("id", pa.int64()),
    ]
)
ROWS = 300


def _made_rows(seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if draw.random() < 0.15 else value

    def text() -> Any:
        return maybe(draw.choice(["", "a", 'é"\\\n\t\x01', "x" * draw.randrange(60), "日本"]))

    def message() -> Any:
        return {
            "role": draw.choice(["user", "assistant"]),
            "content": text(),
            "number": maybe(draw.choice([0, -5, 2**62])),
            "small": draw.randrange(256),
            "real": maybe(draw.choice([0.5, 1.0, -1e300, 1e-7, float("inf")])),
            "single": maybe(draw.choice([0.5, 1.0, -3.0])),
            "flag": maybe(draw.random() < 0.5),
            "parts": maybe([maybe({"type": "text", "text": text()}) for _ in range(draw.randrange(4))]),
        }

    return [
        {
            "messages": maybe([maybe(message()) for _ in range(draw.randrange(5))]),
            "tags": maybe([text() for _ in range(draw.randrange(4))]),
            "about": maybe({"turns": maybe([maybe({"text": text()}) for _ in range(draw.randrange(3))])}),
            "pairs": maybe([(f"key {i}", maybe([i, -i])) for i in range(draw.randrange(3))]),
            "deep": maybe(
                [maybe([maybe([text()]) for _ in range(draw.randrange(3))]) for _ in range(draw.randrange(3))]
            ),
            "id": index,
        }
        for index in range(ROWS)
    ]


def _parquet(**options: Any) -> Callable[[Any, pathlib.Path], None]:
    return lambda table, path: pq.write_table(table, path, **options)


def _arrow(compression: str) -> Callable[[Any, pathlib.Path], None]:
    return lambda table, path: feather.write_feather(table, str(path), compression=compression, chunksize=70)


def _stream(table: Any, path: pathlib.Path) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table, max_chunksize=77)


WRITERS = {
    "snappy.parquet": _parquet(row_group_size=90),
    "pages.parquet": _parquet(
        compression="zstd", data_page_size=200, write_batch_size=7, data_page_version="2.0", use_dictionary=False
    ),
    "rows.parquet": _parquet(compression="none", data_page_size=100, write_batch_size=1, write_page_index=True),
    "legacy.parquet": _parquet(use_compliant_nested_type=False, compression="gzip"),
    "plain.arrow": _arrow("uncompressed"),
    "lz4.arrow": _arrow("lz4"),
    "zstd.arrow": _arrow("zstd"),
    "stream.arrow": _stream,
}


@pytest.mark.parametrize("name", WRITERS)
def test_rows_equal_those_of_pyarrow(tmp_path: pathlib.Path, name: str) -> None:
    table = pa.Table.from_pylist(_made_rows(1), schema=SCHEMA)
    path = tmp_path / name
    WRITERS[name](table, path)
    dataset = feedline.open(path, missing="none")
    rows = table.to_pylist()
    order = list(range(ROWS))
    random.Random(2).shuffle(order)
    for index in order:
        sample, row = dataset[index], rows[index]
        assert sample.messages == row["messages"], index
        assert sample.tags == row["tags"], index
        assert sample.about_turns == (None if row["about"] is None else row["about"]["turns"]), index
        assert sample.pairs == (None if row["pairs"] is None else dict(row["pairs"])), index
        assert sample.deep == row["deep"], index
        assert sample.id == index
    # json numbers are equal for 1 and 1.0, so the types are compared too
    kinds = {type(one["real"]) for row in rows for one in row["messages"] or [] if one} - {type(None)}
    read = {type(one["real"]) for i in order for one in dataset[i].messages or [] if one} - {type(None)}
    assert kinds == read == {float}


@pytest.mark.parametrize("name", ["snappy.parquet", "rows.parquet", "plain.arrow", "zstd.arrow"])
def test_rows_of_remote_files(tmp_path: pathlib.Path, name: str) -> None:
    table = pa.Table.from_pylist(_made_rows(1), schema=SCHEMA)
    WRITERS[name](table, tmp_path / name)
    rows = table.to_pylist()
    with serving(tmp_path) as server:
        dataset = feedline.open(server.url(name), fields=("id", "messages", "tags"), missing="none")
        loader = dataset.collate("list", fields=["messages", "tags"]).loader(16, shuffle=True, seed=1, epochs=1)
        read = {
            int(i): (m, t) for batch in loader for i, m, t in zip(batch.id, batch.messages, batch.tags, strict=True)
        }
        requests = len(server.requests)
    assert read == {row["id"]: (row["messages"], row["tags"]) for row in rows}
    assert requests < ROWS or name == "rows.parquet"  # blocks, not values, are requested


@pytest.mark.parametrize("name", ["snappy.parquet", "plain.arrow"])
def test_members_that_are_numbers_stay_columns(tmp_path: pathlib.Path, name: str) -> None:
    rows = [{"turns": [{"text": f"{i}.{k}", "score": i + k} for k in range(i % 4)]} for i in range(50)]
    path = tmp_path / name
    WRITERS[name](pa.Table.from_pylist(rows), path)
    both = feedline.open(path, fields=("turns.score", "turns")).collate("list", fields="turns.score")
    for batch in both.loader(7, shuffle=True, seed=3, epochs=1, output="numpy"):
        for turns, scores in zip(batch.turns, batch.turns_score, strict=True):
            assert [turn["score"] for turn in turns] == scores.tolist()
    assert feedline.open(path)[3]._fields == ("turns",)


@pytest.mark.parametrize("name", ["snappy.parquet", "plain.arrow"])
def test_types_that_json_lacks_are_not_opened(tmp_path: pathlib.Path, name: str) -> None:
    table = pa.table(
        {
            "id": [1, 2],
            "sums": pa.array([[decimal.Decimal(1)], []], pa.list_(pa.decimal128(5, 2))),
            "keys": pa.array([[(1, "a")], []], pa.map_(pa.int32(), pa.string())),
        }
    )
    WRITERS[name](table, tmp_path / name)
    dataset = feedline.open(tmp_path / name)
    assert dataset[0]._fields == ("id",)
    with pytest.raises(
        feedline.ConfigError, match=r"the column 'sums' holds list of decimals, which this version cannot"
    ):
        feedline.open(tmp_path / name, fields=["sums"])


@pytest.mark.parametrize("name", ["snappy.parquet", "pages.parquet", "plain.arrow", "zstd.arrow", "stream.arrow"])
def test_lists_of_files_hold_bytes(tmp_path: pathlib.Path, name: str) -> None:
    images = [
        None if i == 5 else [{"bytes": bytes([k]) * (i * 40), "path": f"{k}.jpg"} for k in range(i % 4)]
        for i in range(200)
    ]
    rows = [{"images": files, "blobs": [b"\xff", None], "real": [{"x": 0.5, "y": [b""]}]} for files in images]
    table = pa.Table.from_pylist(rows)
    WRITERS[name](table, tmp_path / name)
    dataset = feedline.open(tmp_path / name, missing="none")
    for index, row in enumerate(table.to_pylist()):
        assert {field: dataset[index][k] for k, field in enumerate(dataset[index]._fields)} == row
    with pytest.raises(feedline.ConfigError, match=r"cannot be of kind text"):
        feedline.open(tmp_path / name, fields=["images:text"])
    with pytest.raises(feedline.ConfigError, match=r"'images' holds lists with bytes, which JSON files cannot store"):
        dataset.pack(tmp_path / "packed")


@pytest.mark.parametrize("name", ["snappy.parquet", "plain.arrow"])
def test_targets_are_the_values_that_filter_gets(tmp_path: pathlib.Path, name: str) -> None:
    rows = [{"tags": ["a", None], "blobs": [b"\xff"]}, {"tags": [], "blobs": []}, {"tags": None, "blobs": [None]}]
    WRITERS[name](pa.Table.from_pylist(rows), tmp_path / name)
    dataset = feedline.open(tmp_path / name, missing="none")
    seen: list[Any] = []
    dataset.filter(lambda row: seen.append(row) or True)  # type: ignore[func-returns-value]
    assert dataset.targets("blobs") == [row["blobs"] for row in seen] == [row["blobs"] for row in rows]
    assert dataset[:2].targets("tags") == [row["tags"] for row in seen[:2]] == [["a", None], []]
    with pytest.raises(feedline.ConfigError, match=r"targets: sample 2 has no value in the field 'tags'"):
        dataset.targets("tags")


@pytest.mark.parametrize("name", ["snappy.parquet", "zstd.arrow"])
def test_a_required_list_that_is_null_is_an_error(tmp_path: pathlib.Path, name: str) -> None:
    WRITERS[name](pa.table({"tags": pa.array([["a"], None], pa.list_(pa.string()))}), tmp_path / name)
    dataset = feedline.open(tmp_path / name)
    assert dataset[0].tags == ["a"]
    with pytest.raises(feedline.DataError, match=r"the row has no value in the column 'tags'.*record 1"):
        dataset[1]


@pytest.mark.parametrize("name", ["snappy.parquet", "plain.arrow"])
def test_text_that_is_not_utf_8_is_an_error(tmp_path: pathlib.Path, name: str) -> None:
    damaged = pa.array([[b"good"], [b"bad \xff"]], pa.list_(pa.binary())).view(pa.list_(pa.string()))
    WRITERS[name](pa.table({"tags": damaged}), tmp_path / name)
    dataset = feedline.open(tmp_path / name)
    assert dataset[0].tags == ["good"]
    with pytest.raises(feedline.DataError, match=r"UTF-8.*record 1"):
        dataset[1]


def test_views_of_text_in_lists(tmp_path: pathlib.Path) -> None:
    rows = [["short", "a text with more than twelve bytes", None], [], ["x" * 13]]
    column = pa.array(rows, pa.list_(pa.string_view()))
    with pa.ipc.new_file(str(tmp_path / "v.arrow"), pa.schema([("tags", column.type)])) as file:
        file.write_batch(pa.record_batch([column], names=["tags"]))
    dataset = feedline.open(tmp_path / "v.arrow")
    assert [dataset[i].tags for i in range(3)] == rows


def _numbers(seed: int, nulls: float) -> list[dict[str, Any]]:
    draw = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if draw.random() < nulls else value

    def some(make: Callable[[], Any]) -> list[Any]:
        return [make() for _ in range(draw.randrange(4))]

    return [
        {
            "id": index,
            "flat": maybe(some(lambda: maybe(draw.randrange(-9, 9)))),
            "ragged": maybe(some(lambda: maybe(some(lambda: maybe(draw.random()))))),
            "objects": maybe(some(lambda: maybe({"n": maybe(draw.randrange(99)), "box": maybe(some(draw.random))}))),
            "about": {"flags": maybe(some(lambda: maybe(draw.random() < 0.5)))},
        }
        for index in range(ROWS)
    ]


NUMBERS = pa.schema(
    [
        ("id", pa.int64()),
        ("flat", pa.list_(pa.int16())),
        ("ragged", pa.large_list(pa.list_(pa.float64()))),
        ("objects", pa.list_(pa.struct([("n", pa.int64()), ("box", pa.list_(pa.float64()))]))),
        ("about", pa.struct([("flags", pa.list_(pa.bool_()))])),
    ]
)
NUMBER_FIELDS = ("id", "flat:json", "ragged:json", "objects", "about.flags:json")


@pytest.mark.parametrize("nulls", [0, 0.2], ids=["full", "nulls"])
@pytest.mark.parametrize("name", WRITERS)
def test_lists_of_numbers_are_json_on_request(tmp_path: pathlib.Path, name: str, nulls: float) -> None:
    rows = _numbers(3, nulls)
    WRITERS[name](pa.Table.from_pylist(rows, schema=NUMBERS), tmp_path / name)
    dataset = feedline.open(tmp_path / name, fields=NUMBER_FIELDS, missing="none")
    order = list(range(ROWS))
    random.Random(2).shuffle(order)
    for index in order:
        assert list(dataset[index]) == [*list(rows[index].values())[:4], rows[index]["about"]["flags"]], index


@pytest.mark.parametrize("name", ["pages.parquet", "zstd.arrow"])
def test_both_forms_of_lists_of_numbers(tmp_path: pathlib.Path, name: str) -> None:
    rows = _numbers(4, 0)
    WRITERS[name](pa.Table.from_pylist(rows, schema=NUMBERS), tmp_path / name)
    fields = ("flat", "lists=flat:json", "objects", "objects.n")
    dataset = feedline.open(tmp_path / name, fields=fields).collate("list")
    read = [row for batch in dataset.loader(7, epochs=1, output="numpy") for row in zip(*batch, strict=True)]
    for (flat, lists, objects, numbers), row in zip(read, rows, strict=True):
        assert flat.tolist() == lists == row["flat"]
        assert objects == row["objects"]
        assert numbers.tolist() == [one["n"] for one in objects]
    assert feedline.open(tmp_path / name, fields=("flat", "about.flags"))[0].flat.tolist() == rows[0]["flat"]


@pytest.mark.parametrize("name", ["snappy.parquet", "plain.arrow"])
def test_lists_that_are_not_arrays_name_the_field_that_reads_them(tmp_path: pathlib.Path, name: str) -> None:
    rows = [{"ragged": [[1], [2, 3]], "gaps": [1, None], "objects": [{"n": None}, {"n": 1}]}]
    WRITERS[name](pa.Table.from_pylist(rows), tmp_path / name)
    for field, column in (("ragged", "ragged"), ("gaps", "gaps"), ("objects.n", "objects")):
        with pytest.raises(
            feedline.DataError, match=f"read the values as Python lists with '{column}:json' in fields="
        ):
            feedline.open(tmp_path / name, fields=[field])[0]
        assert feedline.open(tmp_path / name, fields=[f"{column}:json"])[0][0] == rows[0][column]
    assert [column.name for column in feedline.open(tmp_path / name, fields=["gaps"]).unopened] == [
        "ragged",
        "objects.n",
    ]


def test_the_first_file_may_have_no_values(tmp_path: pathlib.Path) -> None:
    pq.write_table(pa.table({"x": pa.nulls(2)}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [[1, None], [2]]}), tmp_path / "b.parquet")
    dataset = feedline.open([tmp_path / "a.parquet", tmp_path / "b.parquet"], fields=["x:json"], missing="none")
    assert [dataset[i].x for i in range(4)] == [None, None, [1, None], [2]]


def test_tensors_have_no_lists(tmp_path: pathlib.Path) -> None:
    tensors = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int32(), (2, 2)), pa.array([[1, 2, 3, 4]], pa.list_(pa.int32(), 4))
    )
    table = pa.table({"x": tensors})
    pq.write_table(table, tmp_path / "x.parquet")
    feather.write_feather(table, str(tmp_path / "x.arrow"), compression="uncompressed")
    for name in ("x.parquet", "x.arrow"):
        assert feedline.open(tmp_path / name)[0].x.tolist() == [[1, 2], [3, 4]]
        with pytest.raises(feedline.ConfigError, match="cannot be of kind json"):
            feedline.open(tmp_path / name, fields=["x:json"])


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_dictionaries_in_lists(tmp_path: pathlib.Path, compression: str | None) -> None:
    words = pa.array(["a", None, "b", "c", "a", "b", "a"]).dictionary_encode()
    numbers = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1, 0, 0, 1], pa.uint8()), pa.array([[5, 6], [7]]))
    offsets = pa.array([0, 1, 3, 3, None, 5, 7], pa.int32())
    table = pa.table(
        {
            "structs": pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([words, numbers], ["w", "n"])),
            "words": pa.ListArray.from_arrays(offsets, words),
        }
    )
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(str(tmp_path / "d.arrow"), table.schema, options=options) as stream:
        stream.write_table(table)
    dataset = feedline.open(tmp_path / "d.arrow", missing="none")
    expected = table.to_pylist()
    for index in (2, 0, 4, 1, 3):
        assert dataset[index]._asdict() == expected[index]


@pytest.mark.parametrize("name", ["snappy.parquet", "zstd.arrow"])
def test_filters_of_samples_with_bytes_in_lists(tmp_path: pathlib.Path, name: str) -> None:
    rows = [{"id": i, "images": [{"bytes": b"\xff", "path": None}] * (i % 3), "blobs": [b"\xff"] * i} for i in range(9)]
    WRITERS[name](pa.Table.from_pylist(rows), tmp_path / name)
    dataset = feedline.open(tmp_path / name)
    assert [row.id for row in dataset.filter(lambda row: row["id"] > 6)] == [7, 8]
    assert [row.id for row in dataset.filter(lambda row: len(row["images"]) == 2)] == [2, 5, 8]
    assert [row.id for row in dataset.filter(lambda row: row["blobs"] == [b"\xff"])] == [1]
