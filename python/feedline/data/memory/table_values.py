# SPDX-License-Identifier: Apache-2.0
"""Values of a table's columns that are not fields of its dataset, for groups, filters and targets."""

from __future__ import annotations

import os
from typing import Any

from ... import _engine
from ...errors import ConfigError, DataError
from .column import Column, is_missing
from .frame_columns import FileColumn, column_of
from .table_columns import TableColumns, columns_of


class TableValues:
    """The columns of the table of a dataset. A table in a file is read again when a column is used, so that only the
    dataset's fields remain in memory.
    """

    def __init__(self, source: TableColumns, rows: int) -> None:
        self.names = tuple(source.columns)
        self._path = source.source
        self._columns = source if source.is_frame else None
        self._rows = rows

    def column(self, where: str, name: str) -> Column:
        """Returns a column. Raises ConfigError if a row has no value, or if the values are not numbers or text."""
        source = self._source()
        column = column_of(where, name, source.columns[name])
        column.row_label = source.row_label
        self._check_length(where, name, column.length)
        column.require_values("drop such rows, or fill them")
        if column.objects is not None or (column.numbers is not None and column.numbers.ndim != 1):
            raise ConfigError(
                f"{where}: the column {name!r} holds neither numbers nor text; make it a field with "
                f'fields=(..., "{name}")'
            )
        return column

    def values(self, where: str, engine: _engine.Dataset, name: str) -> list[Any]:
        """Returns a column's number or text for each sample."""
        return _selected(values_of(self.column(where, name)), engine)

    def array(self, where: str, engine: _engine.Dataset, name: str) -> Any:
        """As `values`, but with numbers as a NumPy array, integers and booleans as int64."""
        import numpy

        column = self.column(where, name)
        if column.numbers is None:
            return _selected(values_of(column), engine)
        numbers = column.numbers if column.numbers.dtype.kind == "f" else column.numbers.astype(numpy.int64)
        return numbers[positions(engine)]

    def classes(self, where: str, engine: _engine.Dataset, name: str) -> list[int]:
        """Returns the class number of each sample: the column's integers, or the numbers of its sorted texts.

        Raises ConfigError if the column has other numbers.
        """
        column = self.column(where, name)
        if column.cells is not None:
            return _selected(column.classes()[0].tolist(), engine)
        if column.codes is not None:
            return _selected(column.codes.tolist(), engine)
        if column.numbers.dtype.kind == "f":
            raise ConfigError(f"{where}: the column {name!r} holds {column.kind}, not integers or text")
        return _selected([int(number) for number in column.numbers.tolist()], engine)

    def all_columns(self, where: str, engine: _engine.Dataset) -> dict[str, list[Any]]:
        """Returns the values of all columns for each sample. Missing text is None."""
        chosen = positions(engine)
        made = {}
        for name, raw in self._source().columns.items():
            values = _python_values(raw)
            self._check_length(where, name, len(values))
            made[name] = [values[row] for row in chosen]
        return made

    def _source(self) -> TableColumns:
        return self._columns if self._columns is not None else columns_of(self._path)

    def _check_length(self, where: str, name: str, rows: int) -> None:
        if rows == self._rows:
            return
        if self._columns is None:
            raise DataError(f"{where}: {self._path!r} has {rows} rows now, but {self._rows} when it was opened")
        raise ConfigError(f"{where}: the column {name!r} has {rows} rows, but the dataset's table has {self._rows}")


def positions(engine: _engine.Dataset) -> list[int]:
    """Returns the row of each sample, from 0."""
    return [int(engine.key(i)) for i in range(len(engine))]


def values_of(column: Column) -> list[Any]:
    """Returns the numbers or texts of all rows. Requires: no row is missing."""
    if column.numbers is not None:
        return list(column.numbers.tolist())
    if column.codes is not None:
        return [column.names[code] for code in column.codes.tolist()]
    return list(map(os.fsdecode, column.text_list()))


def _selected(values: list[Any], engine: _engine.Dataset) -> list[Any]:
    return [values[row] for row in positions(engine)]


def _python_values(raw: Any) -> list[Any]:
    if isinstance(raw, FileColumn):
        column = raw.column("filter")
        values = column.objects if column.objects is not None else values_of(column)
        return [None if no else value for no, value in zip(raw.absent, values, strict=True)]
    method = next((getattr(raw, name) for name in ("to_pylist", "to_list", "tolist") if hasattr(raw, name)), None)
    values = list(raw) if method is None else method()
    if all(issubclass(kind, int | float) for kind in set(map(type, values))):
        return values  # a missing number is NaN
    return [None if is_missing(value) else value for value in values]
