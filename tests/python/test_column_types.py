# SPDX-License-Identifier: Apache-2.0
"""Types of columns in Arrow and Parquet files, compared with pyarrow."""

from __future__ import annotations

import io
import json
import logging
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import feedline

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

_TEXTS = ["a", "a text of more than twelve bytes", "", "猫", "another text that a view points at"]


def _ipc(path: pathlib.Path, table: Any, **options: Any) -> str:
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as file:
        file.write_table(table)
    return str(path)


def _stream(path: pathlib.Path, table: Any) -> str:
    with pa.ipc.new_stream(path, table.schema) as file:
        file.write_table(table)
    return str(path)


def _parquet(path: pathlib.Path, table: Any, **options: Any) -> str:
    pa.parquet.write_table(table, path, **options)
    return str(path)


_WRITERS: dict[str, Callable[[pathlib.Path, Any], str]] = {
    "file": _ipc,
    "stream": _stream,
    "lz4": lambda path, table: _ipc(path, table, compression="lz4"),
    "zstd": lambda path, table: _ipc(path, table, compression="zstd"),
}


def _values(source: str, field: str, missing: str = "error") -> list[Any]:
    dataset = feedline.open(source, fields=(field,), missing=missing)
    if missing == "none" or dataset.schema[field.split(":")[0]].kind == "array":
        dataset = dataset.collate("list")
    values = [dataset[i][0] for i in range(len(dataset))]
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]


@pytest.mark.parametrize("form", _WRITERS)
@pytest.mark.parametrize("kind", ["string_view", "binary_view"])
def test_views_of_bytes(tmp_path: pathlib.Path, form: str, kind: str) -> None:
    values: list[Any] = [text if kind == "string_view" else text.encode() for text in _TEXTS]
    column = pa.array([*values, None, *values], getattr(pa, kind)())
    path = _WRITERS[form](tmp_path / "t.arrow", pa.table({"x": column}))
    assert _values(path, "x", "none") == column.to_pylist()


@pytest.mark.parametrize("form", _WRITERS)
def test_views_in_slices_structs_and_chunks(tmp_path: pathlib.Path, form: str) -> None:
    texts = [f"text number {i}, long enough" * (i % 3) for i in range(40)]
    array = pa.array(texts, pa.string_view())
    chunks = pa.chunked_array([array.slice(3, 10), array.slice(20)])
    struct = pa.chunked_array([pa.StructArray.from_arrays([chunk], ["inner"]) for chunk in chunks.chunks])
    path = _WRITERS[form](tmp_path / "t.arrow", pa.table({"x": chunks, "s": struct}))
    assert _values(path, "x") == chunks.to_pylist()
    assert _values(path, "s.inner") == chunks.to_pylist()


@pytest.mark.parametrize("form", _WRITERS)
@pytest.mark.parametrize("kind", ["list_view", "large_list_view"])
def test_views_of_lists(tmp_path: pathlib.Path, form: str, kind: str) -> None:
    values = [[1.0, 2.0], [], [3.0], None, [4.0, 5.0, 6.0]]
    column = pa.array(values, getattr(pa, kind)(pa.float32()))
    path = _WRITERS[form](tmp_path / "t.arrow", pa.table({"x": column}))
    assert _values(path, "x", "none") == values


def test_views_of_lists_out_of_order(tmp_path: pathlib.Path) -> None:
    offsets, sizes = pa.array([2, 0, 1], pa.int32()), pa.array([2, 2, 0], pa.int32())
    column = pa.ListViewArray.from_arrays(offsets, sizes, pa.array([1, 2, 3, 4], pa.int64()))
    path = _ipc(tmp_path / "t.arrow", pa.table({"x": column}))
    assert _values(path, "x") == [[3, 4], [1, 2], []]


def _tensors(shape: tuple[int, ...], permutation: list[int] | None) -> Any:
    kind = pa.fixed_shape_tensor(pa.uint8(), shape, permutation=permutation)
    storage = pa.array(
        np.arange(4 * np.prod(shape), dtype=np.uint8).reshape(4, -1).tolist(), pa.list_(pa.uint8(), int(np.prod(shape)))
    )
    return pa.ExtensionArray.from_storage(kind, storage)


@pytest.mark.parametrize("write", [_ipc, _parquet])
@pytest.mark.parametrize(
    ("shape", "permutation"), [((2, 3), None), ((4, 5, 3), None), ((2, 3), [1, 0]), ((2, 3, 4), [2, 0, 1])]
)
def test_tensors_of_fixed_shape(
    tmp_path: pathlib.Path, write: Any, shape: tuple[int, ...], permutation: list[int] | None
) -> None:
    array = _tensors(shape, permutation)
    path = write(tmp_path / ("t.arrow" if write is _ipc else "t.parquet"), pa.table({"grid": array}))
    expected = np.arange(4 * np.prod(shape), dtype=np.uint8).reshape(4, *shape)
    if permutation is not None:  # by Arrow's specification; pyarrow 26 has other strides for more than two dimensions
        expected = expected.transpose(0, *(1 + one for one in permutation))
    if len(shape) == 2 or permutation is None:
        np.testing.assert_array_equal(array.to_numpy_ndarray(), expected)
    dataset = feedline.open(path)
    assert dataset.schema["grid"].dtype == "uint8"
    np.testing.assert_array_equal(np.stack([dataset[i].grid for i in range(4)]), expected)
    (batch,) = dataset.loader(4, output="numpy")
    np.testing.assert_array_equal(batch.grid, expected)


def test_names_of_dimensions_are_shown(tmp_path: pathlib.Path) -> None:
    kind = pa.fixed_shape_tensor(pa.int32(), (2, 2), dim_names=["H", "W"], permutation=[1, 0])
    array = pa.ExtensionArray.from_storage(kind, pa.array([[1, 2, 3, 4]], pa.list_(pa.int32(), 4)))
    dataset = feedline.open(_ipc(tmp_path / "t.arrow", pa.table({"x": array})))
    assert dataset[0].x.tolist() == [[1, 3], [2, 4]]
    assert "dimensions W, H" in dataset.explain()


def _with_extension(name: str, parameters: str, values: Any) -> Any:
    metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": parameters}
    return pa.table([values], schema=pa.schema([pa.field("x", values.type, metadata=metadata)]))


@pytest.mark.parametrize(
    "parameters", ['{"shape": [2, 2]}', '{"shape": [-1, 3]}', '{"shape": [1, 3], "permutation": [0, 0]}', "{"]
)
def test_tensors_whose_shape_does_not_fit(tmp_path: pathlib.Path, parameters: str) -> None:
    table = _with_extension("arrow.fixed_shape_tensor", parameters, pa.array([[1, 2, 3]], pa.list_(pa.int32(), 3)))
    path = _ipc(tmp_path / "t.arrow", table)
    with pytest.raises(feedline.ConfigError, match=r"'x' holds .*arrow\.fixed_shape_tensor whose shape does not fit"):
        feedline.open(path, fields=("x",))


@pytest.mark.parametrize("write", [_ipc, _parquet])
@pytest.mark.parametrize(
    ("kind", "unit", "word"),
    [
        (pa.timestamp("us"), "us", "timestamp[us]"),
        (pa.timestamp("ns"), "ns", "timestamp[ns]"),
        (pa.timestamp("ms", "Europe/Berlin"), "ms", "timestamp[ms, tz=Europe/Berlin]"),
        (pa.date32(), "days", "date[days]"),
        (pa.time32("ms"), "ms", "time[ms]"),
        (pa.time64("us"), "us", "time[us]"),
        (pa.duration("us"), "us", "duration[us]"),
    ],
)
def test_times_have_their_unit(tmp_path: pathlib.Path, write: Any, kind: Any, unit: str, word: str) -> None:
    integers = pa.array([1, 86_399, 5], pa.int32() if kind in (pa.date32(), pa.time32("ms")) else pa.int64())
    path = write(tmp_path / ("t.arrow" if write is _ipc else "t.parquet"), pa.table({"t": integers.cast(kind)}))
    dataset = feedline.open(path)
    assert [int(dataset[i].t) for i in range(3)] == [1, 86_399, 5]
    assert dataset.schema["t"].unit == unit
    assert f"unit='{unit}'" in repr(dataset.schema["t"])
    assert word in dataset.explain()
    assert any(word in finding.text for finding in dataset.inspect().findings)


def test_seconds_in_parquet_are_milliseconds(tmp_path: pathlib.Path) -> None:
    times = pa.array([1, 2], pa.int64()).cast(pa.timestamp("s"))
    dataset = feedline.open(_parquet(tmp_path / "t.parquet", pa.table({"t": times})))
    assert dataset.schema["t"].unit == "ms"
    assert [int(dataset[i].t) for i in range(2)] == [1000, 2000]


def test_files_with_other_units_are_not_one_dataset(tmp_path: pathlib.Path) -> None:
    paths = []
    for unit in ("us", "ms"):
        times = pa.array([1, 2], pa.int64()).cast(pa.timestamp(unit))
        paths.append(_parquet(tmp_path / f"{unit}.parquet", pa.table({"t": times})))
    with pytest.raises(feedline.ConfigError, match=r"timestamp\[ms\].*timestamp\[us\].*schema changes"):
        feedline.open("::".join(paths))


_NESTED = {
    "two": (pa.list_(pa.list_(pa.float32())), [[[1, 2], [3, 4]], [], [[5, 6]]]),
    "three": (pa.list_(pa.list_(pa.list_(pa.int16()))), [[[[1], [2]], [[3], [4]]], [[[5, 6, 7]]], [[[]]]]),
    "inner fixed": (pa.list_(pa.list_(pa.int64(), 2)), [[[1, 2]], [[3, 4], [5, 6]]]),
    "large": (pa.large_list(pa.large_list(pa.bool_())), [[[True, False]], [[True], [False]]]),
    "half": (pa.list_(pa.list_(pa.float16())), [[[0.5, 1.5]]]),
}


@pytest.mark.parametrize("case", _NESTED)
@pytest.mark.parametrize("options", [{}, {"data_page_size": 1, "write_batch_size": 1}, {"data_page_version": "2.0"}])
def test_nested_lists_in_parquet(tmp_path: pathlib.Path, case: str, options: dict[str, Any]) -> None:
    kind, values = _NESTED[case]
    rows = [values[i % len(values)] for i in range(50)]
    table = pa.table({"x": pa.array(rows, kind)})
    assert _values(_parquet(tmp_path / "t.parquet", table, **options), "x:array") == rows
    assert _values(_ipc(tmp_path / "t.arrow", table), "x:array") == rows


def test_empty_lists_of_lists_of_known_size(tmp_path: pathlib.Path) -> None:
    table = pa.table({"x": pa.array([[[1, 2, 3, 4]], []], pa.list_(pa.list_(pa.float32(), 4)))})
    for path in (_ipc(tmp_path / "t.arrow", table), _parquet(tmp_path / "t.parquet", table)):
        dataset = feedline.open(path).collate("list")
        assert [dataset[i].x.shape for i in range(2)] == [(1, 4), (0, 4)]


@pytest.mark.parametrize("rows", [[[[1, 2], [3]]], [[[1], [None]]], [[[1], None]]])
def test_nested_lists_that_are_no_array(tmp_path: pathlib.Path, rows: Any) -> None:
    table = pa.table({"x": pa.array([[[9], [9]], *rows], pa.list_(pa.list_(pa.int64())))})
    for path in (_ipc(tmp_path / "t.arrow", table), _parquet(tmp_path / "t.parquet", table)):
        dataset = feedline.open(path, fields=("x:array",))
        assert dataset[0].x.tolist() == [[9], [9]]
        with pytest.raises(feedline.DataError, match=r"null|differ|inner lists") as caught:
            dataset[1]
        assert (caught.value.record, caught.value.stage) == (1, "format")


def test_null_and_empty_outer_lists(tmp_path: pathlib.Path) -> None:
    rows = [[[1, 2]], None, [], [[3, 4], [5, 6]]]
    table = pa.table({"x": pa.array(rows, pa.list_(pa.list_(pa.int64())))})
    for path in (_ipc(tmp_path / "t.arrow", table), _parquet(tmp_path / "t.parquet", table)):
        assert _values(path, "x:array", "none") == rows


_BOXES = [[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]], [], [[0.0, 0.0, 2.5, 2.0]]]
_CLASSES = [[1, 0], [], [2]]


@pytest.mark.parametrize("is_struct_of_lists", [False, True])
@pytest.mark.parametrize("is_fixed", [False, True])
@pytest.mark.parametrize("write", [_ipc, _parquet])
def test_boxes_of_objects(tmp_path: pathlib.Path, write: Any, is_fixed: bool, is_struct_of_lists: bool) -> None:
    box = pa.list_(pa.float32(), 4) if is_fixed else pa.list_(pa.float32())
    if is_struct_of_lists:
        kind = pa.struct({"bbox": pa.list_(box), "category": pa.list_(pa.int64())})
        rows: list[Any] = [{"bbox": b, "category": c} for b, c in zip(_BOXES, _CLASSES, strict=True)]
    else:
        kind = pa.list_(pa.struct({"bbox": box, "category": pa.int64()}))
        rows = [
            [{"bbox": b, "category": c} for b, c in zip(boxes, classes, strict=True)]
            for boxes, classes in zip(_BOXES, _CLASSES, strict=True)
        ]
    path = write(tmp_path / ("t.arrow" if write is _ipc else "t.parquet"), pa.table({"objects": pa.array(rows, kind)}))
    dataset = feedline.open(path, fields=("boxes=objects.bbox:boxes", "labels=objects.category")).collate("list")
    assert [dataset[i].boxes.tolist() for i in range(3)] == _BOXES
    assert dataset[1].boxes.shape == (0, 4)
    assert [dataset[i].labels.tolist() for i in range(3)] == _CLASSES


def test_null_struct_in_a_list(tmp_path: pathlib.Path) -> None:
    kind = pa.list_(pa.struct({"n": pa.int64()}))
    table = pa.table({"o": pa.array([[{"n": 1}], [{"n": 2}, None]], kind)})
    for path in (_ipc(tmp_path / "t.arrow", table), _parquet(tmp_path / "t.parquet", table)):
        dataset = feedline.open(path)
        assert dataset[0][0].tolist() == [1]
        with pytest.raises(feedline.DataError, match="null"):
            dataset[1]


def _jpeg(value: int) -> bytes:
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image.fromarray(np.full((16, 16, 3), value, np.uint8)).save(out, "JPEG")
    return out.getvalue()


@pytest.mark.parametrize("write", [_ipc, _parquet])
@pytest.mark.parametrize("path_type", [pa.null(), pa.string(), pa.large_string()])
def test_images_whose_path_is_null(tmp_path: pathlib.Path, write: Any, path_type: Any) -> None:
    kind = pa.struct({"bytes": pa.binary(), "path": path_type})
    images = pa.array([{"bytes": _jpeg(60 * i), "path": None} for i in range(3)], kind)
    path = write(tmp_path / ("t.arrow" if write is _ipc else "t.parquet"), pa.table({"image": images}))
    assert [int(sample.image.mean()) for sample in feedline.open(path).resize((8, 8))] == [0, 60, 120]


@pytest.mark.parametrize("write", [_ipc, _parquet])
def test_images_by_their_first_bytes(tmp_path: pathlib.Path, write: Any) -> None:
    columns = {"img_bytes": [None, _jpeg(60), _jpeg(120)], "raw": [b"x", b"y", b"z"], "label": [0, 1, 0]}
    path = write(tmp_path / ("t.arrow" if write is _ipc else "t.parquet"), pa.table(columns))
    dataset = feedline.open(path, missing="skip")
    assert [int(sample.image.mean()) for sample in dataset.resize((8, 8))] == [60, 120]
    assert [one.name for one in dataset.unopened] == ["raw"]
    named = feedline.open(path, fields=("img_bytes", "raw"), missing="skip").resize((8, 8))
    assert named[0].img_bytes.shape == (3, 8, 8)
    assert named[0].raw == b"y"
    assert feedline.open(path, fields=("img_bytes:bytes",), missing="skip")[0].img_bytes == columns["img_bytes"][1]
    assert dataset.inspect().fields == ["image", "label"]


@pytest.mark.parametrize("write", [_ipc, _parquet])
def test_an_attribute_error_explains_a_map_that_is_not_opened(tmp_path: pathlib.Path, write: Any) -> None:
    kind = pa.map_(pa.int32(), pa.int64())
    table = pa.table({"number": [1, 2], "counts": pa.array([[(7, 1)], [(8, 2)]], kind)})
    dataset = feedline.open(write(tmp_path / ("t.arrow" if write is _ipc else "t.parquet"), table))
    (batch,) = dataset.loader(2, output="numpy")
    for row in (batch, dataset[0]):
        with pytest.raises(AttributeError, match=r"'counts': the column 'counts.*map.*does not read this type"):
            row.counts  # noqa: B018


def _huggingface(features: dict[str, Any], table: Any) -> Any:
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


@pytest.mark.parametrize("write", [_ipc, _parquet])
def test_features_that_are_not_applied_are_named(
    tmp_path: pathlib.Path, write: Any, caplog: pytest.LogCaptureFixture
) -> None:
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    one = [{"bytes": _jpeg(60), "path": None}]
    table = pa.table({"image": pa.array(one, kind), "page": pa.array(one, kind)})
    table = _huggingface({"image": {"mode": "L", "_type": "Image"}, "page": {"_type": "Pdf"}}, table)
    path = write(tmp_path / ("t.arrow" if write is _ipc else "t.parquet"), table)
    with caplog.at_level(logging.INFO, "feedline"):
        dataset = feedline.open(path, fields=("image", "page"))
    for text in (caplog.text, dataset.explain()):
        assert "Image(mode='L')" in text
        assert "Pdf" in text


def test_extension_types(tmp_path: pathlib.Path) -> None:
    schema = pa.schema([("doc", pa.json_()), ("flag", pa.bool8()), ("id", pa.uuid())])
    arrays = [
        pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', "[2]"])),
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, b"1" * 16], pa.binary(16))),
    ]
    dataset = feedline.open(_ipc(tmp_path / "t.arrow", pa.table(arrays, schema=schema)))
    assert [sample.doc for sample in dataset] == [{"a": 1}, [2]]
    assert [sample.id for sample in dataset] == [b"0" * 16, b"1" * 16]
    for name in ("arrow.json", "arrow.bool8", "arrow.uuid"):
        assert name in dataset.explain()


@pytest.mark.parametrize("write", [_ipc, _parquet])
def test_columns_that_are_not_opened(tmp_path: pathlib.Path, write: Any, caplog: pytest.LogCaptureFixture) -> None:
    columns = {
        "image": [_jpeg(0), _jpeg(9)],
        "caption": ["one", "two"],
        "price": pa.array([1, 2], pa.int8()).cast(pa.decimal128(5, 0)),
        "gone": pa.nulls(2),
    }
    path = write(tmp_path / ("t.arrow" if write is _ipc else "t.parquet"), pa.table(columns))
    with caplog.at_level(logging.INFO, "feedline"):
        dataset = feedline.open(path)
    assert [(one.name, one.spec) for one in dataset.unopened] == [
        ("caption", "caption:text"),
        ("price", ""),
        ("gone", ""),
    ]
    assert caplog.messages[-1].endswith('; to open a column, add it to fields=, for example as "caption:text"')
    findings = " ".join(finding.text for finding in dataset.inspect().findings)
    for text in (caplog.text, repr(dataset), dataset.explain(), findings, dataset._repr_html_()):
        for name in ("caption", "price", "gone"):
            assert name in text
    (batch,) = dataset.resize((8, 8)).loader(2, output="numpy")
    for row in (batch, dataset.resize((8, 8))[0]):
        with pytest.raises(AttributeError, match=r"caption.*was not opened.*caption:text"):
            row.caption  # noqa: B018
        with pytest.raises(AttributeError, match=r"price.*does not read this type"):
            row.price  # noqa: B018
        with pytest.raises(AttributeError, match=r"no attribute 'other'; its fields are image"):
            row.other  # noqa: B018
    opened = feedline.open(path, fields=("image", dataset.unopened[0].spec)).resize((8, 8))
    assert [sample.caption for sample in opened] == ["one", "two"]
    caplog.clear()
    with caplog.at_level(logging.INFO, "feedline"):
        feedline.open(path, fields=("image", "caption:text"))
    assert caplog.messages[-1].endswith("; this version cannot read these columns")
