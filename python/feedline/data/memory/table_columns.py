# SPDX-License-Identifier: Apache-2.0
"""Finds the columns of a table, the image column, and the index of a data frame."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ... import _engine
from ...errors import ConfigError
from .. import arguments
from .column import OwnedList
from .frame_columns import FileColumn, column_of
from .row_files import are_images

# Usual names of the column of paths, in order of preference.
_PATH_NAMES = ("image", "path", "file_name", "filename", "filepath", "file", "img", "image_path", "image_file")


class TableColumns:
    """The columns of a table and the index of its data frame, which are pickled with the dataset."""

    def __init__(
        self, source: str, columns: Mapping[str, Any], index: Any = None, folder: str = "", is_frame: bool = True
    ) -> None:
        self.source = source
        # lists are copied, as the caller may change them before the dataset is pickled
        self.columns = {
            name: OwnedList(values) if type(values) in (list, tuple) else values for name, values in columns.items()
        }
        self.index = index  # None: rows are named by their positions
        self.folder = folder
        self.is_frame = is_frame
        self.unread: list[tuple[str, str]] = []

    def only(self, names: Sequence[str]) -> TableColumns:
        return TableColumns(self.source, {name: self.columns[name] for name in names}, self.index, self.folder)

    def row_label(self, row: int) -> str:
        return "" if self.index is None else f" (index {self.index[row]!r})"


def columns_of(source: Any) -> TableColumns:
    """Reads or wraps the columns of a table."""
    if isinstance(source, TableColumns):
        return source
    if isinstance(source, str | os.PathLike):
        path = arguments.path_text("table", "source", source)
        folder, columns, unread = _engine.read_table(path)
        made = TableColumns(path, {row[0]: FileColumn(*row) for row in columns}, None, folder, is_frame=False)
        made.unread = unread
        return made
    module = type(source).__module__.partition(".")[0]
    if module == "pandas" and hasattr(source, "columns"):
        _require_different(map(str, source.columns))
        return TableColumns("table", {str(name): source[name] for name in source.columns}, index_of(source))
    if module == "polars" and hasattr(source, "get_columns"):
        return TableColumns("table", {column.name: column for column in source.get_columns()})
    if module == "pyarrow" and hasattr(source, "column_names"):
        _require_different(source.column_names)
        return TableColumns("table", {name: source.column(i) for i, name in enumerate(source.column_names)})
    if isinstance(source, Mapping):
        return TableColumns("table", {str(name): values for name, values in source.items()})
    raise ConfigError(
        "table: source must be a pandas or polars DataFrame, an Arrow table, a dict of columns, or the path of a CSV, "
        f"JSONL or Parquet file, not {type(source).__name__}{_advice(source)}"
    )


def _advice(source: Any) -> str:
    """Returns how to make a table of a source that is none; empty if that is unknown."""
    if hasattr(source, "collect"):
        return "; call its collect()"
    first = source[0] if isinstance(source, list | tuple) and source else None
    if isinstance(first, Mapping):
        return "; make a table of the rows: pandas.DataFrame(rows)"
    if isinstance(first, str | os.PathLike):
        return "; for several files, pass a pattern such as 'train-{0,1}.csv' or 'train-*.parquet'"
    return ""


def _require_different(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ConfigError(f"table: two columns are called {name!r}; rename or drop one of them")
        seen.add(name)


def type_of(raw: Any) -> str:
    if isinstance(raw, FileColumn):
        return raw.holds
    return str(getattr(raw, "dtype", getattr(raw, "type", "")))


def require_column(option: str, name: Any, source: TableColumns) -> None:
    if not isinstance(name, str):
        raise ConfigError(f"table: {option} must be the name of a column, not {name!r}")
    if name in source.columns:
        return
    unread = dict(source.unread)
    if name in unread:
        column = _read_with_pyarrow(source.source, name) if unread[name].startswith("list of") else None
        if column is not None:
            source.columns[name] = column
            source.unread.remove((name, unread[name]))
            return
        raise ConfigError(
            f"table: {option}: the column {name!r} of {source.source!r} ({unread[name]}) cannot be read from this "
            "file; read the file with pandas or pyarrow, and pass the table"
        )
    raise ConfigError(f"table: {option}: there is no column {name!r}; the columns are {', '.join(source.columns)}")


def _read_with_pyarrow(source: str, name: str) -> Any:
    """Reads a column of lists of local Parquet files. Returns None if pyarrow is not installed, or if these are other
    files.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return None
    shards = _engine.StoredSource(source).shards()
    names = [os.fsdecode(one) for one in shards.names]
    if shards.is_remote or not all(one.endswith(".parquet") for one in names):
        return None
    return pyarrow.chunked_array(
        [
            chunk
            for one in names
            for chunk in pyarrow.parquet.read_table(one, columns=[name], partitioning=None).column(0).chunks
        ]
    )


def image_column(where: str, source: TableColumns) -> str:
    for name in _PATH_NAMES:
        if name in source.columns:
            return name
    for name, raw in source.columns.items():
        column = column_of(where, name, raw)
        if column.cells is not None and are_images(column):
            return name
    raise ConfigError(
        f"{where}: no column contains paths of images; name the column with image=, or pass "
        f"template='{{COLUMN}}.jpg'; the columns are {', '.join(source.columns)}"
    )


def index_of(frame: Any) -> Any:
    """Returns the index of a pandas object; None if its labels equal the row positions."""
    index = getattr(frame, "index", None)
    if type(frame).__module__.partition(".")[0] != "pandas" or index is None:
        return None
    if type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1:
        return None
    return index


def name_cells(index: Any) -> Any:
    numbers = index.to_numpy()
    if numbers.dtype.kind in "iu":
        address = numbers.__array_interface__["data"][0]
        return _engine.text_cells_of_integers(address, len(numbers), numbers.strides[0], numbers.dtype.name, numbers)
    return _engine.text_cells_of_list([str(one) for one in index])
