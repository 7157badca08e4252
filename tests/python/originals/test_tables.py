# SPDX-License-Identifier: Apache-2.0
"""Arrow and Parquet files of pyarrow and datasets have the same values as in these libraries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import feedline

Original = Callable[..., Any]
NUMBERS = ("n", "up", "small", "tiny", "flag", "x", "y", "half", "ids")
FLAT = (*(f"{name}:array" for name in NUMBERS), "text", "large", "raw", "code:bytes", "word", "file:bytes")
NESTED = (*FLAT, "pair", "many", "boxes")


def shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, str) else np.asarray(value).tolist()


def order_of(fields: tuple[str, ...], rows: list[list[Any]], nested: bool) -> list[list[Any]]:
    """Returns the rows in the order of the fields; Feedline returns them in the order of the file's columns."""
    columns = [
        "n",
        "up",
        "small",
        "tiny",
        "flag",
        "x",
        "y",
        "half",
        "text",
        "large",
        "raw",
        "code",
        "ids",
        "word",
        "file",
    ]
    columns += ["pair", "many", "boxes"] if nested else []
    return [[row[columns.index(field.split(":")[0])] for field in fields] for row in rows]


def test_tables_read_as_their_libraries_read_them(original: Original, tmp_path: Path) -> None:
    wanted = original("tables", "write_tables.py", tmp_path)
    photos = wanted.pop("photos")
    for name, rows in wanted.items():
        fields = FLAT if name.endswith(".parquet") else NESTED
        dataset = feedline.open(tmp_path / name, fields=fields, missing="none")
        names = [field.split(":")[0] for field in fields]
        dataset = dataset.collate("list", fields=tuple(names))
        assert len(dataset) == len(rows) == 700, name
        rows = order_of(fields, rows, fields is NESTED)
        for batch in dataset.loader(100, output="numpy", shuffle=False):
            got = [[shown(value) for value in row] for row in zip(*batch, strict=True)]
            want, rows = rows[:100], rows[100:]
            for i, (have, expected) in enumerate(zip(got, want, strict=True)):
                for field, one, other in zip(names, have, expected, strict=True):
                    assert one == other, (name, i, field)
    for source in ("saved", "dict/train", "photos.parquet"):
        dataset = feedline.open(tmp_path / source).collate("list", fields="image").to_dtype("uint8")
        assert (len(dataset), dataset.classes, list(dataset.schema)) == (40, ["cat", "ö"], ["image", "label"]), source
        for i, (pixels, label, points, ids) in enumerate(photos):
            one = dataset[i]
            assert int(one.label) == label
            assert np.asarray(one.image).transpose(1, 2, 0).tobytes().hex() == pixels, (source, i)
            if source != "photos.parquet":
                more = feedline.open(tmp_path / source, fields=("points", "ids")).collate("list", fields="ids")[i]
                assert (more.points.tolist(), more.ids.tolist()) == (points, ids)
