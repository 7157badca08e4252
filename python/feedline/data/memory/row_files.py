# SPDX-License-Identifier: Apache-2.0
"""Fields of files: paths, lists of paths, and templates of paths."""

from __future__ import annotations

import os
import re
import string
from collections.abc import Callable, Sequence
from typing import Any

from ... import _engine
from ..._engine import TextCells
from ...errors import ConfigError
from .column import Column, fail_mixed, nested, shown

_MOST_IMAGES = 254  # images of one sample, as for views
_LOOKED_AT = 8  # rows whose paths are checked when a dataset is opened
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class FileFields:
    """Collects the fields of a dataset for the engine. Every method raises ConfigError if its column is invalid."""

    def __init__(self, where: str, root: str) -> None:
        self._where = where
        self._root = root
        self.columns = _engine.RowColumns()
        self.names: list[str] = []

    def add_files(self, name: str, column: Column, kind: str = "image") -> None:
        """Adds a field of files. A column of lists becomes several fields, NAME_0, NAME_1 and so on."""
        if column.cells is not None:
            column.require_values("every row needs a path")
            self._check_paths(column.text_list(_LOOKED_AT), column)
            self._add_files(name, kind, ["", ""], [column.cells])
            return
        if column.codes is not None:
            column.require_values("every row needs a path")
            self.add_files(name, text_of_codes(column), kind)
            return
        column.require_values("every row needs a path")
        if column.numbers is not None:
            column.fail(0, f"is {shown(column.numbers[0].tolist())}, which is not a path; {_advice_of(column)}")
        lists = nested(column)
        if lists is None:
            fail_mixed(column, "every row needs a path, or every row a list of paths")
        self._add_lists(name, kind, column, lists)

    def _add_lists(self, name: str, kind: str, column: Column, lists: Sequence[Sequence[Any]]) -> None:
        import numpy

        offsets = numpy.zeros(len(lists) + 1, numpy.int64)
        numpy.cumsum([len(one) for one in lists], out=offsets[1:])
        flat = [os.fspath(path) if isinstance(path, os.PathLike) else path for one in lists for path in one]
        cells = _engine.text_cells_of_list(flat)
        if isinstance(cells, int):
            row = int(numpy.searchsorted(offsets, cells, "right")) - 1
            column.fail(row, f"has {shown(flat[cells])} in its list, which is not a path")
        self._check_paths([one[0] for one in lists[:_LOOKED_AT] if one], column)
        lengths = numpy.diff(offsets)
        most = int(lengths.max())
        if most == 0:
            column.fail(0, "is an empty list, as in all rows; at least one row needs a path")
        if most > _MOST_IMAGES:
            column.fail(int(lengths.argmax()), f"has {most} paths; a sample may have at most {_MOST_IMAGES}")
        for position in range(most):
            self._add_files(f"{name}_{position}", kind, ["", ""], [cells], offsets.tobytes(), position)

    def add_template(
        self, name: str, template: str, names: Sequence[str], column_named: Callable[[str], Column]
    ) -> None:
        """Adds images whose paths are built from other columns: ``"{image_id}.jpg"``."""
        literals, cells = [""], []
        for text, field, spec, conversion in _parsed(self._where, template):
            literals[-1] += text
            if field is None:
                continue
            if field not in names:
                advice = "" if field and not field.isdecimal() else "; write a column's name in the braces"
                raise ConfigError(
                    f"{self._where}: template {template!r}: there is no column {field!r}; the columns are "
                    f"{', '.join(names)}{advice}"
                )
            column = column_named(field)
            column.require_values(f"template {template!r} needs the value for the path")
            cells.append(_template_cells(column, spec, conversion, template))
            literals.append("")
        if not cells:
            raise ConfigError(
                f"{self._where}: template {template!r} does not contain a column name; write one as '{{image_id}}.jpg'"
            )
        self._add_files(name, "image", literals, cells)

    def add_audio(
        self, name: str, column: Column, begins: Sequence[float], durations: Sequence[float], channels: Sequence[int]
    ) -> None:
        """Adds a field of parts of audio files, in seconds; a negative duration is the rest. A
        channel of -1 stands for all channels.
        """
        import numpy

        column.require_values("every row needs a path")
        assert column.cells is not None
        first, length = (numpy.asarray(values, numpy.float64).tobytes() for values in (begins, durations))
        of_rows = numpy.asarray(channels, numpy.int32).tobytes() if any(one >= 0 for one in channels) else None
        self.columns.add_audio(name, self._root, column.cells, first, length, of_rows)
        self.names.append(name)

    def _add_files(
        self,
        name: str,
        kind: str,
        literals: list[str],
        cells: list[TextCells],
        offsets: bytes | None = None,
        position: int = 0,
    ) -> None:
        self.columns.add_files(name, kind, self._root, literals, cells, offsets, position)
        self.names.append(name)

    def _check_paths(self, paths: Sequence[Any], column: Column) -> None:
        """Raises ConfigError if none of the first values of a column looks like a file name or names an existing
        file.
        """
        from .. import audio_formats
        from ..image_formats import EXTENSIONS

        for path in map(os.fsdecode, paths):
            full = path if os.path.isabs(path) or _URL.match(path) else os.path.join(self._root, path)
            extension = path.rpartition(".")[2].lower()
            if (
                extension in EXTENSIONS
                or extension in audio_formats.EXTENSIONS
                or _URL.match(full)
                or os.path.isfile(full)
            ):
                return
        if paths:
            column.fail(0, f"is {shown(os.fsdecode(paths[0]))}, which is not the path of a file; {_advice_of(column)}")


def _advice_of(column: Column) -> str:
    return f"name the column of paths, or build paths from it with template='{{{column.name}}}.jpg' in feedline.table"


def are_images(column: Column) -> bool:
    from ..image_formats import EXTENSIONS

    seen = [os.fsdecode(text) for text in column.text_list(_LOOKED_AT) if text is not None]
    return bool(seen) and all(text.rpartition(".")[2].lower() in EXTENSIONS for text in seen)


def are_audio(column: Column) -> bool:
    from ..audio_formats import EXTENSIONS

    if column.cells is None:
        return False
    seen = [os.fsdecode(text) for text in column.text_list(_LOOKED_AT) if text is not None]
    return bool(seen) and all(text.rpartition(".")[2].lower() in EXTENSIONS for text in seen)


def text_of_codes(column: Column) -> Column:
    """Converts categories to text."""
    texts = [column.names[code] for code in column.codes.tolist()]
    cells = _engine.text_cells_of_list(texts)
    assert not isinstance(cells, int)
    return Column(
        column.where,
        column.name,
        column.length,
        cells=cells,
        texts=lambda most: texts[:most],
        row_label=column.row_label,
    )


def _parsed(where: str, template: str) -> list[tuple[str, str | None, str, str]]:
    if not isinstance(template, str):
        raise ConfigError(f"{where}: template must be text such as '{{image_id}}.jpg', not {template!r}")
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ConfigError(f"{where}: template {template!r} is not a valid format: {error}") from None
    for _, name, _, conversion in parts:
        if conversion and conversion not in "rsa":
            raise ConfigError(
                f"{where}: template {template!r}: the conversion '!{conversion}' of {name!r} is not one of !s, !r, !a"
            )
    return [(text, name, spec or "", conversion or "") for text, name, spec, conversion in parts]


def _refuse_whole_floats(column: Column, template: str) -> None:
    """Raises ConfigError if all numbers are whole, as a frame stores integers that once had missing values."""
    if all(float(value).is_integer() for value in column.numbers.tolist()):
        value = column.numbers[0].item()
        column.fail(
            0,
            f"is {value}, which would be written as '{value}' in the path; convert the column to integers, or write "
            f"'{{{column.name}:.0f}}' in template {template!r}",
        )


def _template_cells(column: Column, spec: str, conversion: str, template: str) -> TextCells:
    numbers = column.numbers
    if not spec and not conversion and column.cells is not None:
        return column.cells
    if not spec and not conversion and column.written is not None:
        return column.written
    if not spec and not conversion and numbers is not None and numbers.dtype.kind in "iu":
        address = numbers.__array_interface__["data"][0]
        return _engine.text_cells_of_integers(address, len(numbers), numbers.strides[0], numbers.dtype.name, numbers)
    format_one: Callable[[Any], str] = (
        "{" + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"
    ).format
    if not spec and not conversion and numbers is not None and numbers.dtype.kind == "f":
        _refuse_whole_floats(column, template)
    values = numbers.tolist() if numbers is not None else column.text_list() if column.cells else column.objects or []
    if column.codes is not None:
        values = text_of_codes(column).text_list()
    texts = []
    for row, value in enumerate(values):
        try:
            texts.append(format_one(value))
        except (TypeError, ValueError) as error:
            column.fail(row, f"is {shown(value)}, which does not fit template {template!r}: {error}")
    cells = _engine.text_cells_of_list(texts)
    assert not isinstance(cells, int)
    return cells
