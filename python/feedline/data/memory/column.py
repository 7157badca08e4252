# SPDX-License-Identifier: Apache-2.0
"""A column of values for the engine, and messages about its values."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..._engine import TextCells
from ...errors import ConfigError

_SHOWN = 60  # maximum characters of a value in a message


@dataclass
class Column:
    """A column of a table. One of `numbers`, `cells`, `codes` and `objects` contains its values.

    Attributes:
        where: name of the function for messages, such as ``"table"``.
        name: the column's name.
        numbers: a NumPy array with one row per sample.
        cells: text.
        written: the text of `numbers` as it is written in the table's file; None if it follows from the numbers.
        codes: an integer array with the number of each row's category; -1 is a missing value. `names` contains the
            categories.
        objects_of: function that returns `objects`: other values, as Python objects, such as lists or values of
            different types.
        texts: function that returns the text of the first rows, or of all rows, as a list; used for `cells`.
        encode: function that returns (codes, names) of text, unsorted; None if `texts` is as fast.
        lists: function that returns lists of text as offsets (rows + 1), codes, and names, unsorted; or None if a list
            contains a missing value. None if `objects` is as fast.
        missing: the first row without a value.
        row_label: function that returns " (index 'a')" for a row whose label in its frame differs from its position.
    """

    where: str
    name: str
    length: int
    numbers: Any = None
    cells: TextCells | None = None
    written: TextCells | None = None
    codes: Any = None
    names: list[str] = field(default_factory=list)
    objects_of: Callable[[], list[Any]] | None = None
    texts: Callable[[int | None], list[Any]] | None = None
    encode: Callable[[], tuple[Any, list[Any]]] | None = None
    lists: Callable[[], tuple[Any, Any, list[str]] | None] | None = None
    missing: int | None = None
    row_label: Callable[[int], str] = lambda row: ""

    @functools.cached_property
    def objects(self) -> list[Any] | None:
        return self.objects_of() if self.objects_of is not None else None

    def at(self, row: int) -> str:
        return f"row {row}{self.row_label(row)} of the column {self.name!r}"

    def fail(self, row: int, problem: str) -> NoReturn:
        raise ConfigError(f"{self.where}: {self.at(row)} {problem}")

    def require_values(self, advice: str) -> None:
        if self.missing is not None:
            self.fail(self.missing, f"has no value (NaN or None); {advice}")

    def text_list(self, most: int | None = None) -> list[Any]:
        """Returns the text of the first `most` rows, or of all rows. Requires: `cells`."""
        assert self.texts is not None
        return self.texts(most)

    def text_codes(self) -> tuple[Any, list[Any]]:
        """Returns a number for the text of every row (int32), and the texts by number; a missing text is None.
        Requires: `cells`.
        """
        import numpy

        if self.encode is not None:
            return self.encode()
        rows = self.text_list()
        numbers = {text: number for number, text in enumerate(set(rows))}
        return numpy.fromiter(map(numbers.__getitem__, rows), numpy.int32, len(rows)), list(numbers)

    def classes(self) -> tuple[Any, list[str]]:
        """Returns the class number of every row (int32), and the names in sorted order. Requires: `cells`."""
        import numpy

        codes, texts = self.text_codes()
        given = [os.fsdecode(text) for text in texts]
        names = sorted(set(given))
        order = {name: number for number, name in enumerate(names)}
        return numpy.array([order[name] for name in given], numpy.int32)[codes], names

    @property
    def kind(self) -> str:
        """Returns a description of the values for messages."""
        if self.numbers is not None:
            return f"numbers ({self.numbers.dtype})"
        if self.cells is not None:
            return "text"
        return "categories" if self.codes is not None else "objects"


class OwnedList(list[Any]):
    """A list that is never modified, so that it need not be copied."""


def shown(value: Any) -> str:
    """Returns a short representation of a value for messages."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or pandas' NA or NaT."""
    return may_be_missing(type(value)) and not (isinstance(value, float) and value == value)


def may_be_missing(kind: type) -> bool:
    """Whether some values of a type are missing values."""
    return kind.__name__ in ("NoneType", "NAType", "NaTType") or issubclass(kind, float)


def fail_mixed(column: Column, wanted: str) -> NoReturn:
    """Raises ConfigError for a column of objects with values of different types, or of an unsupported type."""
    values = column.objects or (column.text_list() if column.cells is not None else [])
    present = [(row, value) for row, value in enumerate(values) if not is_missing(value)]
    first_row, first = present[0] if present else (0, None)
    for row, value in present:
        if isinstance(value, str) != isinstance(first, str) or isinstance(value, list) != isinstance(first, list):
            column.fail(
                row,
                f"is {shown(value)} ({type(value).__name__}), but row {first_row} is {shown(first)} "
                f"({type(first).__name__}); {wanted}",
            )
    column.fail(first_row, f"is {shown(first)} ({type(first).__name__}); {wanted}")


def nested(column: Column) -> list[Sequence[Any]] | None:
    """Returns the values of a column as lists; None if any row is not a list."""
    values = column.objects
    if values is None or not all(isinstance(value, list | tuple) or hasattr(value, "__array__") for value in values):
        return None
    return [value.tolist() if hasattr(value, "tolist") else value for value in values]
