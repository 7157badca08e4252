# SPDX-License-Identifier: Apache-2.0
"""Converts lists and NumPy arrays, without copies if possible."""

from __future__ import annotations

import os
from typing import Any

from ... import _engine
from ...errors import ConfigError
from .column import Column, is_missing, may_be_missing, shown


def of_numpy(where: str, name: str, array: Any) -> Column:
    import numpy

    array = numpy.asarray(array)
    if array.ndim == 0:
        raise ConfigError(f"{where}: {name} is a single value, not one value per sample: {array!r}")
    if array.dtype.kind not in "biufU":
        return of_list(where, name, array.tolist())
    if array.dtype.kind == "U" and array.ndim > 1:
        return of_list(where, name, array.tolist())
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    made = Column(where, name, len(array))
    if array.dtype.kind == "U":
        address = array.__array_interface__["data"][0]
        made.cells = _engine.text_cells_of_utf32(
            address, len(array), array.strides[0], array.dtype.itemsize // 4, array
        )
        made.texts = lambda most: array[:most].tolist()
        return made
    made.numbers = array if array[:1].flags.c_contiguous else numpy.ascontiguousarray(array)
    if array.dtype.kind == "f" and array.ndim == 1:
        absent = numpy.isnan(array)
        made.missing = int(absent.argmax()) if absent.any() else None
    return made


def of_list(where: str, name: str, values: list[Any]) -> Column:
    import numpy

    made = Column(where, name, len(values))
    kinds = set(map(type, values))
    if kinds and all(issubclass(kind, str | bytes) for kind in kinds):
        return _with_text(made, values)
    if kinds and all(issubclass(kind, str | bytes | os.PathLike) for kind in kinds):
        return _with_text(made, [os.fspath(value) for value in values])
    if any(map(may_be_missing, kinds)):
        made.missing = next((row for row, value in enumerate(values) if is_missing(value)), None)
    integers = (int, numpy.integer, numpy.bool_)
    if kinds and all(issubclass(kind, (*integers, float, numpy.floating)) for kind in kinds):
        are_integers = all(issubclass(kind, integers) for kind in kinds)
        are_flags = kinds <= {bool, numpy.bool_}
        try:
            made.numbers = numpy.array(values, bool if are_flags else numpy.int64 if are_integers else numpy.float64)
        except OverflowError:
            row = next(row for row, value in enumerate(values) if not -(2**63) <= value < 2**63)
            made.fail(row, f"is {shown(values[row])}, which needs more than 64 bits")
        return made
    if kinds and all(hasattr(kind, "__array__") for kind in kinds):
        values = [numpy.asarray(value) for value in values]
        if all(value.ndim == 0 for value in values):  # such as tensors of one number
            return of_list(where, name, [value.item() for value in values])
    made.objects = values
    return made


def _with_text(made: Column, values: list[Any]) -> Column:
    try:
        cells = _engine.text_cells_of_list(values)
    except UnicodeEncodeError as error:
        row = next(row for row, value in enumerate(values) if value == error.object)
        made.fail(row, f"is {shown(values[row])}, which is not valid Unicode text ({error.reason})")
    if isinstance(cells, int):
        made.fail(cells, f"is {shown(values[cells])}, which is not text")
    made.cells, made.texts = cells, lambda most: values[:most] if most else values
    return made
