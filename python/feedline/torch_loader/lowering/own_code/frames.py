# SPDX-License-Identifier: Apache-2.0
"""Looks up values of pandas frames and series as quickly as values of arrays.

pandas takes 20 to 200 microseconds to look up a value by `frame.iloc[index, 0]` or `frame.iloc[index].path`, and an
array less than 5. The columns are found once, when the code of a class is analysed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_KINDS = "biufO"  # NumPy dtypes whose arrays return the same objects as pandas
_SCALARS = {"iloc": "iloc", "iat": "iloc", "loc": "loc", "at": "loc"}


class Column:
    """Returns the value of a column for an index.

    Indices other than integers from 0 to the number of rows are looked up by the user's own expression.
    """

    def __init__(self, values: Any, count: int, exact: Callable[[Any], Any]) -> None:
        self._values, self._count, self._exact = values, count, exact

    def __call__(self, index: Any) -> Any:
        if type(index) is int and 0 <= index < self._count:
            return self._values[index]
        return self._exact(index)


class Rows:
    """The rows of a frame, as `frame.iloc[index]` returns them.

    Attributes:
        indexer: `frame.iloc` or `frame.loc`.
        is_object: whether rows contain the values of their columns without a conversion.
    """

    def __init__(self, frame: Any, indexer: Any) -> None:
        self.indexer = indexer
        self._frame, self._dtype = frame, frame.iloc[0].dtype
        self.is_object = self._dtype.kind == "O" and not hasattr(self._dtype, "na_value")

    def check(self, index: Any) -> None:
        """Raises the error of a lookup of this row."""
        if type(index) is not int or not 0 <= index < len(self._frame):
            self.indexer[index]

    def column(self, name: Any) -> Column | None:
        """Returns a function for `row[name]`, or None if pandas has to create the row to look up the value."""
        if type(name) is not str or not self._frame.columns.is_unique or name not in self._frame.columns:
            return None
        series = self._frame[name]
        if self._dtype != series.dtype and not self.is_object:
            return None  # the value is converted to the row's dtype
        return _column(series, lambda index: self.indexer[index][name])

    def attribute(self, name: str) -> Column | None:
        """Like column(), for `row.name`."""
        return None if hasattr(_pandas().Series, name) else self.column(name)


def scalar_column(indexer: Any, column: Any) -> Column | None:
    """Returns a function for `indexer[index, column]`, where `indexer` is a frame's `iloc`, `loc`, `iat` or `at`; None
    if it is not, or if the column cannot be looked up faster.
    """
    frame, kind = _frame_of(indexer, "DataFrame")
    if frame is None:
        return None
    if kind == "iloc":
        if type(column) is not int or not -len(frame.columns) <= column < len(frame.columns):
            return None
        series = frame.iloc[:, column]
    else:
        if type(column) is not str or not frame.columns.is_unique or column not in frame.columns:
            return None
        series = frame[column]
    return _column(series, lambda index: indexer[index, column])


def series_column(base: Any) -> Column | None:
    """Returns a function for `base[index]`, where `base` is a series or its `iloc`, `loc`, `iat` or `at`."""
    pandas = _pandas()
    series = base
    if pandas is None or type(base) is not pandas.Series:
        series, _ = _frame_of(base, "Series")
    elif not _counts_rows(base):
        return None
    return None if series is None else _column(series, lambda index: base[index])


def rows_of(indexer: Any) -> Rows | None:
    """Returns the rows for `indexer[index]`, where `indexer` is a frame's `iloc` or `loc`; None if it is not, or if a
    row's values differ from those of the columns.
    """
    frame, _ = _frame_of(indexer, "DataFrame")
    if frame is None or type(indexer) not in (type(frame.iloc), type(frame.loc)) or not len(frame):
        return None
    rows = Rows(frame, indexer)
    return rows if rows.is_object or (frame.dtypes == rows._dtype).all() else None


def _frame_of(indexer: Any, kind: str) -> tuple[Any, str]:
    """Returns the frame or series of an indexer that finds rows by position; None if there is none."""
    pandas = _pandas()
    if pandas is None or not type(indexer).__module__.startswith("pandas."):
        return None, ""
    frame = getattr(indexer, "obj", None)
    if type(frame) is not getattr(pandas, kind):
        return None, ""
    for name, by in _SCALARS.items():
        if type(indexer) is type(getattr(frame, name)) and getattr(indexer, "axis", None) is None:
            return (frame, by) if by == "iloc" or _counts_rows(frame) else (None, "")
    return None, ""


def _counts_rows(frame: Any) -> bool:
    """Returns whether the labels of the rows are their positions."""
    index = frame.index
    return type(index) is _pandas().RangeIndex and index.start == 0 and index.step == 1


def _column(series: Any, exact: Callable[[Any], Any]) -> Column | None:
    if not len(series):
        return None
    numpy, dtype = sys.modules["numpy"], series.dtype
    if isinstance(dtype, numpy.dtype):
        values = series.to_numpy() if dtype.kind in _KINDS else None
    else:
        values = series.array if type(dtype) is _pandas().StringDtype else None
    if values is None:
        return None
    return Column(values, len(series), exact)


def _pandas() -> Any:
    return sys.modules.get("pandas")
