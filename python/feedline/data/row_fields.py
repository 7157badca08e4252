# SPDX-License-Identifier: Apache-2.0
"""Fields of datasets in memory: columns as files, labels, targets and other values, for the engine."""

from __future__ import annotations

import os
import re
import string
from collections.abc import Callable, Sequence
from typing import Any

from .. import _engine
from .._engine import TextCells
from ..errors import ConfigError
from .frame_columns import Column, fail_mixed, nested, shown

_MOST_IMAGES = 254  # images of one sample, as for views
_LOOKED_AT = 8  # rows whose paths are checked when a dataset is opened
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class RowFields:
    """Collects the fields of a dataset for the engine. Every method checks its column, and raises ConfigError."""

    def __init__(self, where: str, root: str) -> None:
        self._where = where
        self._root = root
        self.columns = _engine.RowColumns()
        self.names: list[str] = []

    def add_files(self, name: str, column: Column, kind: str = "image") -> None:
        """Adds a field of files; a column of lists becomes several fields, NAME_0 and so on."""
        if column.cells is not None:
            column.require_values("every row needs a path")
            self._check_paths(column.text_list(_LOOKED_AT), column)
            self._add_files(name, kind, ["", ""], [column.cells])
            return
        if column.codes is not None:
            column.require_values("every row needs a path")
            self.add_files(name, _text_of_codes(column), kind)
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
            column.fail(int(lengths.argmax()), f"has {most} paths; a sample may have {_MOST_IMAGES}")
        for position in range(most):
            self._add_files(f"{name}_{position}", kind, ["", ""], [cells], offsets.tobytes(), position)

    def add_template(
        self, name: str, template: str, names: Sequence[str], column_named: Callable[[str], Column]
    ) -> None:
        """Adds images whose paths are made from other columns: ``"{image_id}.jpg"``."""
        literals, cells = [""], []
        for text, field, spec, conversion in _parsed(self._where, template):
            literals[-1] += text
            if field is None:
                continue
            if field not in names:
                raise ConfigError(
                    f"{self._where}: template {template!r}: there is no column {field!r}; the columns are "
                    f"{', '.join(names)}"
                )
            column = column_named(field)
            column.require_values(f"template {template!r} needs it for the path")
            cells.append(_template_cells(column, spec, conversion, template))
            literals.append("")
        if not cells:
            raise ConfigError(f"{self._where}: template {template!r} names no column; write one as '{{image_id}}.jpg'")
        self._add_files(name, "image", literals, cells)

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
        """Raises ConfigError if the first values of a column neither look like files nor exist."""
        from .image_formats import EXTENSIONS

        for path in map(os.fsdecode, paths):
            full = path if os.path.isabs(path) or _URL.match(path) else os.path.join(self._root, path)
            if path.rpartition(".")[2].lower() in EXTENSIONS or _URL.match(full) or os.path.isfile(full):
                return
        if paths:
            column.fail(0, f"is {shown(os.fsdecode(paths[0]))}, which is not the path of a file; {_advice_of(column)}")

    def add_label(self, name: str, column: Column, kind: str = "") -> None:
        """Adds class numbers, a number to predict, or an array of numbers per sample. Text becomes classes."""
        import numpy

        column.require_values("every row needs a label: drop such rows, or fill them")
        if column.codes is not None:
            self._add_codes(name, column.codes, column.names)
        elif column.cells is not None:
            self._add_codes(name, *column.classes())
        elif column.numbers is None:
            fail_mixed(column, "all labels must be text, or all numbers: convert the column")
        elif kind == "class":
            values, codes = numpy.unique(column.numbers, return_inverse=True)
            self._add_codes(name, codes.astype(numpy.int32), [str(value) for value in values.tolist()])
        elif column.numbers.dtype.kind == "f" and column.numbers.ndim == 1:
            numbers = column.numbers
            if not numpy.isfinite(numbers).all():
                row = int(numpy.argmin(numpy.isfinite(numbers)))
                column.fail(row, f"is {numbers[row]}; a label must be finite")
            if (numbers == numpy.floor(numbers)).all() and (abs(numbers) < 2**53).all():
                self._add_numbers(name, numbers.astype(numpy.int64), "value")
            else:
                self._add_numbers(name, numbers, "array")
        else:
            self.add_numbers(name, column, kind)

    def _add_codes(self, name: str, codes: Any, names: list[str]) -> None:
        self._add_numbers(name, codes, "value")
        self.columns.set_classes(names)

    def add_multi_hot(self, name: str, column: Column, separator: str | None) -> None:
        """Adds tags as a float32 vector with 1 for each tag of the row, in sorted order."""
        import numpy

        if column.cells is not None or column.codes is not None:
            text = column if column.cells is not None else _text_of_codes(column)
            rows = [_tags(value, separator) for value in text.text_list()]
        elif column.numbers is not None:
            column.fail(0, f"is {shown(column.numbers[0].tolist())}; tags are lists, or text with separator=")
        else:
            rows = []
            for row, value in enumerate(column.objects or []):
                if value is None or value != value:
                    rows.append([])
                elif isinstance(value, str):
                    rows.append(_tags(value, separator))
                elif isinstance(value, list | tuple | set | frozenset) or hasattr(value, "tolist"):
                    rows.append([str(tag) for tag in (value.tolist() if hasattr(value, "tolist") else value)])
                else:
                    column.fail(row, f"is {shown(value)}; tags are lists, or text with separator=")
        names = sorted({tag for row in rows for tag in row})
        if not names:
            column.fail(0, "has no tag, nor has any other row")
        numbers = {tag: number for number, tag in enumerate(names)}
        offsets = numpy.zeros(len(rows) + 1, numpy.int64)
        numpy.cumsum([len(row) for row in rows], out=offsets[1:])
        codes = numpy.fromiter((numbers[tag] for row in rows for tag in row), numpy.int32, int(offsets[-1]))
        self.columns.add_multi_hot(_row(name, codes, "array", offsets.tobytes()), len(names))
        self.columns.set_classes(names)
        self.names.append(name)

    def add_target(self, name: str, columns: Sequence[Column], is_scalar: bool) -> None:
        """Adds numbers of columns as one float32 vector, or as a float32 scalar."""
        import numpy

        parts = []
        for column in columns:
            column.require_values("every row needs a target: drop such rows, or fill them")
            if column.numbers is None:
                fail_mixed(column, "targets are numbers") if column.objects else column.fail(
                    0, f"is not a number ({column.kind}); targets are numbers"
                )
            if column.numbers.ndim != 1:
                column.fail(0, f"has the shape {column.numbers.shape[1:]}; a target is one number per row and column")
            parts.append(column.numbers.astype(numpy.float32))
        self._add_numbers(name, parts[0] if is_scalar else numpy.stack(parts, 1), "array")

    def add_numbers(self, name: str, column: Column, kind: str = "") -> None:
        """Adds numbers as they are: boxes and keypoints may differ in number."""
        import numpy

        numbers = column.numbers
        if numbers is not None:
            kind = kind or ("value" if numbers.ndim == 1 and numbers.dtype.kind in "iub" else "array")
            self._add_numbers(name, numbers, kind)
            return
        column.require_values("every row needs an array")
        lists = nested(column)
        if lists is None:
            fail_mixed(column, "every row needs an array or a list of numbers")
        tail: tuple[int, ...] = {"boxes": (4,), "keypoints": (2,)}.get(kind, ())
        rows: list[Any] = []
        for row, value in enumerate(column.objects or []):
            try:
                array = numpy.asarray(value)
                array = array.astype(numpy.float32) if kind in ("boxes", "keypoints") else array
            except ValueError:
                column.fail(row, f"is {shown(value)}, which is not an array of numbers")
            array = array.reshape(0, *tail) if array.size == 0 and tail else array
            if array.dtype.kind not in "biuf" or (rows and array.shape[1:] != rows[0].shape[1:]):
                column.fail(
                    row, f"is {shown(value)}; all rows must be numbers with the same dimensions after the first"
                )
            rows.append(array)
        if kind not in ("boxes", "keypoints") and len({array.shape for array in rows}) == 1:
            self._add_numbers(name, numpy.stack(rows), kind or "array")
            return
        offsets = numpy.zeros(len(rows) + 1, numpy.int64)
        numpy.cumsum([len(array) for array in rows], out=offsets[1:])
        self.columns.add_numbers(_row(name, numpy.concatenate(rows), kind or "array", offsets.tobytes()))
        self.names.append(name)

    def _add_numbers(self, name: str, numbers: Any, kind: str) -> None:
        self.columns.add_numbers(_row(name, numbers, kind, None))
        self.names.append(name)

    def add_text(self, name: str, column: Column) -> None:
        column.require_values("every row needs text: fill such rows, as with fillna('')")
        column = _text_of_codes(column) if column.codes is not None else column
        if column.cells is None:
            fail_mixed(column, "every row needs text") if column.objects else column.fail(
                0, f"is not text ({column.kind}); remove ':text' from the field"
            )
        assert column.cells is not None
        self.columns.add_texts(name, column.cells)
        self.names.append(name)

    def add_any(self, name: str, column: Column, kind: str) -> None:
        """Adds a further column: as `kind`, or as its name and values suggest."""
        if kind in ("image", "mask"):
            self.add_files(name, column, kind)
        elif kind in ("class", "value"):
            self.add_label(name, column, kind)
        elif kind == "text":
            self.add_text(name, column)
        elif kind in ("array", "boxes", "keypoints"):
            self.add_numbers(name, column, kind)
        elif kind:
            raise ConfigError(
                f"{self._where}: fields: the kind {kind!r} of {name!r} is not one of image, mask, class, value, array, "
                "boxes, keypoints, text"
            )
        elif name in ("boxes", "keypoints"):
            self.add_numbers(name, column, name)
        elif column.cells is not None and _are_images(column):
            self.add_files(name, column, "mask" if name.startswith(("mask", "seg")) else "image")
        elif column.cells is not None or column.codes is not None:
            self.add_text(name, column)
        else:
            self.add_numbers(name, column)


def _advice_of(column: Column) -> str:
    return f"name the column of paths, or make paths of it with template='{{{column.name}}}.jpg' in feedline.table"


def _are_images(column: Column) -> bool:
    from .image_formats import EXTENSIONS

    seen = [os.fsdecode(text) for text in column.text_list(_LOOKED_AT) if text is not None]
    return bool(seen) and all(text.rpartition(".")[2].lower() in EXTENSIONS for text in seen)


def _tags(value: Any, separator: str | None) -> list[str]:
    if value is None:
        return []
    text = os.fsdecode(value)
    if separator is None:
        return [text.strip()] if text.strip() else []
    return [tag for tag in (part.strip() for part in text.split(separator)) if tag]


def _text_of_codes(column: Column) -> Column:
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
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ConfigError(f"{where}: template {template!r} is not a valid format: {error}") from None
    return [(text, name, spec or "", conversion or "") for text, name, spec, conversion in parts]


def _template_cells(column: Column, spec: str, conversion: str, template: str) -> TextCells:
    numbers = column.numbers
    if not spec and not conversion and column.cells is not None:
        return column.cells
    if not spec and not conversion and numbers is not None and numbers.dtype.kind in "iu":
        address = numbers.__array_interface__["data"][0]
        return _engine.text_cells_of_integers(address, len(numbers), numbers.strides[0], numbers.dtype.name, numbers)
    format_one: Callable[[Any], str] = ("{:" + spec + "}").format if spec else str
    values = numbers.tolist() if numbers is not None else column.text_list() if column.cells else column.objects or []
    if column.codes is not None:
        values = _text_of_codes(column).text_list()
    texts = []
    for row, value in enumerate(values):
        try:
            texts.append(format_one(value))
        except (TypeError, ValueError) as error:
            column.fail(row, f"is {shown(value)}, which does not fit template {template!r}: {error}")
    cells = _engine.text_cells_of_list(texts)
    assert not isinstance(cells, int)
    return cells


def _row(name: str, array: Any, kind: str, offsets: bytes | None) -> Any:
    """Describes an array for the engine."""
    address = array.__array_interface__["data"][0]
    extents = list(array.shape[1:])
    return name, array, address, array.shape[0], array.strides[0], array.dtype.name, extents, offsets, kind
