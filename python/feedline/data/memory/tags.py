# SPDX-License-Identifier: Apache-2.0
"""Converts columns of tags, as lists or text, to class numbers."""

from __future__ import annotations

import os
from itertools import chain
from typing import Any

from .column import Column, is_missing, shown

_LISTS = (list, tuple, set, frozenset)
_ADVICE = "tags must be lists, or text with separator="

_Numbered = tuple[Any, Any, list[str]]  # as numbered_tags(), but with names in any order


def numbered_tags(column: Column, separator: str | None) -> _Numbered:
    """Returns the offset of each row's first tag (int64, rows + 1), the class numbers of all tags (int32), and the
    names of the classes in sorted order.

    Raises ConfigError if a row is neither a list nor text, or if no row has a tag.
    """
    import numpy

    if column.numbers is not None:
        column.fail(0, f"is {shown(column.numbers[0].tolist())}; {_ADVICE}")
    if column.lists is not None and (listed := column.lists()) is not None:
        offsets, codes, given = listed
    elif column.codes is not None:
        offsets, codes, given = _of_texts(column.codes, [*column.names, ""], separator)  # -1: no tag
    elif column.cells is not None:
        offsets, codes, given = _of_texts(*column.text_codes(), separator)
    else:
        offsets, codes, given = _of_lists(_rows(column, separator), column)
    if not len(codes):
        column.fail(0, "has no tag, and neither does any other row")
    names = sorted(set(given))
    order = {name: number for number, name in enumerate(names)}
    return offsets, numpy.array([order[name] for name in given], numpy.int32)[codes], names


def _of_texts(codes: Any, texts: list[Any], separator: str | None) -> _Numbered:
    """Splits each different text once. `codes`: the text of each row, as a position in `texts`."""
    import numpy

    used = numpy.unique(codes)
    split: list[list[str]] = [[] for _ in texts]
    for number in used.tolist():
        split[number] = _tags(texts[number], separator)
    starts, tags, names = _of_lists(split)
    counts = numpy.diff(starts)[codes]
    offsets = _offsets(counts)
    places = numpy.repeat(starts[:-1][codes] - offsets[:-1], counts) + numpy.arange(offsets[-1])
    return offsets, tags[places], names


def _of_lists(rows: list[Any], column: Column | None = None) -> _Numbered:
    """`column`: the column of the rows, if the tags may be other objects than text."""
    import numpy

    offsets = _offsets(numpy.fromiter(map(len, rows), numpy.int64, len(rows)))
    tags = list(chain.from_iterable(rows))
    if not set(map(type, tags)) <= {str}:
        if column is not None and any(map(is_missing, tags)):
            row = next(row for row, listed in enumerate(rows) if any(map(is_missing, listed)))
            column.fail(row, f"is {shown(rows[row])}, which contains a missing value; remove it from the list")
        tags = list(map(str, tags))
    numbers = {tag: number for number, tag in enumerate(set(tags))}
    return offsets, numpy.fromiter(map(numbers.__getitem__, tags), numpy.int32, len(tags)), list(numbers)


def _offsets(counts: Any) -> Any:
    import numpy

    offsets = numpy.zeros(len(counts) + 1, numpy.int64)
    numpy.cumsum(counts, out=offsets[1:])
    return offsets


def _rows(column: Column, separator: str | None) -> list[Any]:
    """Returns the tags of each row of a column of objects."""
    values = column.objects or []
    if set(map(type, values)) <= set(_LISTS):
        return values
    rows: list[Any] = []
    for row, value in enumerate(values):
        if isinstance(value, _LISTS):
            rows.append(value)
        elif hasattr(value, "__array__"):
            rows.append(value.tolist() if value.ndim else column.fail(row, f"is {shown(value)}; {_ADVICE}"))
        elif is_missing(value):
            rows.append([])
        elif isinstance(value, str):
            rows.append(_tags(value, separator))
        else:
            column.fail(row, f"is {shown(value)}; {_ADVICE}")
    return rows


def _tags(value: Any, separator: str | None) -> list[str]:
    if value is None:
        return []
    text = os.fsdecode(value)
    if separator is None:
        return [text.strip()] if text.strip() else []
    return [tag for tag in (part.strip() for part in text.split(separator)) if tag]
