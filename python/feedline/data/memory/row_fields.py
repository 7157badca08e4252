# SPDX-License-Identifier: Apache-2.0
"""Fields of labels, targets, tags, numbers and text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...errors import ConfigError
from .column import Column, fail_mixed, nested, shown
from .row_files import FileFields, are_audio, are_images, text_of_codes
from .tags import numbered_tags

_NEEDS_LABEL = "every row needs a label: drop such rows, as with dropna(), or fill them, as with fillna('unknown')"
_JSON_ADVICE = (
    "; convert such values to text with json.dumps, or read a CSV or JSONL file with feedline.open and 'NAME:json' in "
    "fields="
)


class RowFields(FileFields):
    """Collects the fields of a dataset for the engine. Every method raises ConfigError if its column is invalid."""

    def add_label(self, name: str, column: Column, kind: str = "") -> None:
        """Adds class numbers, a number to predict, or an array of numbers per sample. Text becomes classes."""
        import numpy

        column.require_values(_NEEDS_LABEL)
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
                column.fail(row, f"is {numbers[row]}; labels must be finite: drop such rows, or replace the values")
            if (numbers == numpy.floor(numbers)).all() and (abs(numbers.astype(numpy.float64)) < 2**53).all():
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
        offsets, codes, names = numbered_tags(column, separator)
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
                    0, f"is {shown(_first_text(column))}, which is not a number; targets must be numbers"
                )
            if column.numbers.ndim != 1:
                column.fail(0, f"has the shape {column.numbers.shape[1:]}; a target is one number per row and column")
            parts.append(column.numbers.astype(numpy.float32))
        self._add_numbers(name, parts[0] if is_scalar else numpy.stack(parts, 1), "array")

    def add_numbers(self, name: str, column: Column, kind: str = "") -> None:
        """Adds numbers unchanged; the number of boxes or keypoints may differ between rows."""
        import numpy

        numbers = column.numbers
        if numbers is not None:
            kind = kind or ("value" if numbers.ndim == 1 and numbers.dtype.kind in "iub" else "array")
            if kind == "value":
                _require_int64(column)
            self._add_numbers(name, numbers, kind)
            return
        column.require_values("every row needs an array")
        lists = nested(column)
        if lists is None:
            has_dicts = any(isinstance(value, dict) for value in column.objects or [])
            fail_mixed(column, "every row needs an array or a list of numbers" + (_JSON_ADVICE if has_dicts else ""))
        tail: tuple[int, ...] = {"boxes": (4,), "keypoints": (2,)}.get(kind, ())
        rows: list[Any] = []
        for row, value in enumerate(column.objects or []):
            try:
                array = numpy.asarray(value)
                array = array.astype(numpy.float32) if kind in ("boxes", "keypoints") else array
            except ValueError:
                column.fail(row, f"is {shown(value)}, which is not an array of numbers{_JSON_ADVICE}")
            array = array.reshape(0, *tail) if array.size == 0 and tail else array
            if array.dtype.kind not in "biuf" or (rows and array.shape[1:] != rows[0].shape[1:]):
                advice = "" if array.dtype.kind in "biuf" else _JSON_ADVICE
                column.fail(
                    row, f"is {shown(value)}; all rows must be numbers with the same dimensions after the first{advice}"
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
        column = text_of_codes(column) if column.codes is not None else column
        if column.cells is None:
            fail_mixed(column, "every row needs text") if column.objects else column.fail(
                0, f"is not text ({column.kind}); remove ':text' from the field"
            )
        assert column.cells is not None
        self.columns.add_texts(name, column.cells)
        self.names.append(name)

    def add_any(self, name: str, column: Column, kind: str) -> None:
        """Adds another column, with the given `kind`, or with a kind inferred from the column's name and values."""
        if kind in ("image", "mask", "audio", "video"):
            self.add_files(name, column, kind)
        elif kind in ("class", "value"):
            self.add_label(name, column, kind)
        elif kind == "text":
            self.add_text(name, column)
        elif kind in ("array", "boxes", "keypoints"):
            self.add_numbers(name, column, kind)
        elif kind:
            raise ConfigError(
                f"{self._where}: fields: the kind {kind!r} of {name!r} is not one of image, mask, audio, video, class, "
                "value, "
                "array, boxes, keypoints, text"
            )
        elif name in ("boxes", "keypoints"):
            self.add_numbers(name, column, name)
        elif column.cells is not None and are_images(column):
            self.add_files(name, column, "mask" if name.startswith(("mask", "seg")) else "image")
        elif column.cells is not None and are_audio(column):
            self.add_files(name, column, "audio")
        elif column.cells is not None or column.codes is not None:
            self.add_text(name, column)
        else:
            self.add_numbers(name, column)


def _require_int64(column: Column) -> None:
    """Raises ConfigError if a value exceeds the largest 64-bit integer."""
    numbers = column.numbers
    if numbers.dtype.name == "uint64" and len(numbers) and numbers.max() > 2**63 - 1:
        row = int((numbers > 2**63 - 1).argmax())
        column.fail(row, f"is {numbers[row]}, which exceeds {2**63 - 1}, the largest 64-bit integer")


def _first_text(column: Column) -> str:
    """Returns the text of the first row. Requires: the column has text or categories."""
    text = column if column.cells is not None else text_of_codes(column)
    return os.fsdecode(text.text_list(1)[0])


def _row(name: str, array: Any, kind: str, offsets: bytes | None) -> Any:
    """Describes an array for the engine."""
    address = array.__array_interface__["data"][0]
    extents = list(array.shape[1:])
    return name, array, address, array.shape[0], array.strides[0], array.dtype.name, extents, offsets, kind
