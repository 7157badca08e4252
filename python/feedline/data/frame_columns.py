# SPDX-License-Identifier: Apache-2.0
"""Columns of lists, arrays and data frames, in the forms that the engine reads, without copies if possible."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .. import _engine
from .._engine import TextCells
from ..errors import ConfigError

_SHOWN = 60  # maximum characters of a value in a message


@dataclass
class Column:
    """A column of a table. One of `numbers`, `cells`, `codes` and `objects` has its values.

    Attributes:
        where: the function in messages: ``"table"``.
        name: the column's name.
        numbers: a NumPy array, one row per sample.
        cells: text.
        codes: numbers of categories, an integer array; -1 is a missing value. `names` has the categories.
        objects: other Python objects: lists, or a mixture.
        texts: returns the text of the first rows, or of all, as a list, for `cells`.
        encode: returns (codes, names) of text, unsorted; None if `texts` is as fast.
        missing: the first row without a value.
        row_label: returns " (index 'a')" for a row whose label in its frame differs from its position.
    """

    where: str
    name: str
    length: int
    numbers: Any = None
    cells: TextCells | None = None
    codes: Any = None
    names: list[str] = field(default_factory=list)
    objects: list[Any] | None = None
    texts: Callable[[int | None], list[Any]] | None = None
    encode: Callable[[], tuple[Any, list[str]]] | None = None
    missing: int | None = None
    row_label: Callable[[int], str] = lambda row: ""

    def at(self, row: int) -> str:
        return f"row {row}{self.row_label(row)} of the column {self.name!r}"

    def fail(self, row: int, problem: str) -> NoReturn:
        raise ConfigError(f"{self.where}: {self.at(row)} {problem}")

    def require_values(self, advice: str) -> None:
        if self.missing is not None:
            self.fail(self.missing, f"has no value (NaN or None); {advice}")

    def text_list(self, most: int | None = None) -> list[Any]:
        """Returns the text of the first `most` rows, or of all. Requires: `cells`."""
        assert self.texts is not None
        return self.texts(most)

    def classes(self) -> tuple[Any, list[str]]:
        """Returns the class number of every row (int32), and the names in sorted order. Requires: `cells`."""
        import numpy

        if self.encode is not None:
            codes, texts = self.encode()
        else:
            rows = self.text_list()
            numbers = {text: number for number, text in enumerate(set(rows))}
            codes, texts = numpy.fromiter(map(numbers.__getitem__, rows), numpy.int32, len(rows)), list(numbers)
        given = [os.fsdecode(text) for text in texts]
        names = sorted(set(given))
        order = {name: number for number, name in enumerate(names)}
        return numpy.array([order[name] for name in given], numpy.int32)[codes], names

    @property
    def kind(self) -> str:
        """Describes the values for messages."""
        if self.numbers is not None:
            return f"numbers ({self.numbers.dtype})"
        if self.cells is not None:
            return "text"
        return "categories" if self.codes is not None else "objects"


def shown(value: Any) -> str:
    """Returns a short representation of a value for messages."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def column_of(where: str, name: str, raw: Any) -> Column:
    """Converts a list, a NumPy array, a torch tensor, or a column of a pandas, polars or Arrow table.

    Raises ConfigError naming the row if the values are of different types.
    """
    module = type(raw).__module__.partition(".")[0]
    if isinstance(raw, FileColumn):
        return raw.column(where)
    if module == "pandas":
        return _of_pandas(where, name, raw)
    if module == "polars":
        return _of_polars(where, name, raw)
    if module == "pyarrow":
        return _of_arrow(where, name, raw)
    if hasattr(raw, "data_ptr"):  # a torch tensor
        return _of_numpy(where, name, raw.detach().cpu().numpy())
    if hasattr(raw, "__array_interface__"):
        return _of_numpy(where, name, raw)
    if isinstance(raw, str | bytes) or not hasattr(raw, "__iter__"):
        raise ConfigError(
            f"{where}: {name} must be a list, an array or a column with one value per sample, not {raw!r}"
        )
    return _of_list(where, name, raw if isinstance(raw, OwnedList) else list(raw))


class OwnedList(list[Any]):
    """A list that no one changes, so that it need not be copied."""


@dataclass
class FileColumn:
    """A column that the engine read from a table's file."""

    name: str
    holds: str
    cells: TextCells
    absent: bytes
    values: bytes  # of integers or numbers

    def __len__(self) -> int:
        return len(self.cells)

    def column(self, where: str) -> Column:
        import numpy

        missing = self.absent.find(b"\1")
        made = Column(where, self.name, len(self.cells), missing=None if missing < 0 else missing)
        if self.holds in ("integers", "numbers"):
            made.numbers = numpy.frombuffer(self.values, "int64" if self.holds == "integers" else "float64")
        elif self.holds == "JSON":
            import json

            texts = self.cells.to_list()
            made.objects = [None if no else json.loads(text) for no, text in zip(self.absent, texts, strict=True)]
        else:
            made.cells, made.texts = self.cells, self.cells.to_list
        return made


def _of_pandas(where: str, name: str, raw: Any) -> Column:
    import numpy

    dtype: Any = getattr(raw, "dtype", None)
    if hasattr(raw, "cat"):
        codes = raw.cat.codes.to_numpy()
        return _with_codes(where, name, codes, [str(one) for one in raw.cat.categories])
    if isinstance(dtype, numpy.dtype) and dtype.kind in "biuf":
        return _of_numpy(where, name, raw.to_numpy())
    array = getattr(raw, "array", raw)
    if hasattr(array, "__arrow_array__") and (
        hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "") == "pyarrow"
    ):
        import pyarrow

        return _of_arrow(where, name, pyarrow.chunked_array(array.__arrow_array__()))
    if getattr(dtype, "numpy_dtype", None) is not None and dtype.numpy_dtype.kind in "biuf":
        absent = numpy.asarray(raw.isna())
        if absent.any():
            return Column(where, name, len(raw), objects=raw.tolist(), missing=int(absent.argmax()))
        return _of_numpy(where, name, raw.to_numpy(dtype.numpy_dtype))
    return _of_list(where, name, raw.tolist())


def _of_polars(where: str, name: str, raw: Any) -> Column:
    import polars

    if raw.null_count():
        missing = int(raw.is_null().arg_max())
        if raw.dtype in (polars.String, polars.Categorical, polars.Enum) or raw.dtype.is_numeric():
            return Column(where, name, len(raw), objects=raw.to_list(), missing=missing)
    if raw.dtype.is_numeric() or raw.dtype == polars.Boolean or isinstance(raw.dtype, polars.Array):
        return _of_numpy(where, name, raw.to_numpy())
    if raw.dtype in (polars.Categorical, polars.Enum):
        raw = raw.cast(polars.String)
    if raw.dtype == polars.String:
        try:
            return _of_arrow(where, name, raw.to_arrow(compat_level=polars.CompatLevel.newest()))
        except ImportError:  # polars needs pyarrow for this
            pass
    return _of_list(where, name, raw.to_list())


def _of_arrow(where: str, name: str, raw: Any) -> Column:
    import pyarrow
    import pyarrow.compute
    import pyarrow.types as types

    chunked = raw if isinstance(raw, pyarrow.ChunkedArray) else pyarrow.chunked_array([raw])
    missing = None
    if chunked.null_count:
        missing = int(pyarrow.compute.index(chunked.is_null(), True).as_py())
    if types.is_dictionary(chunked.type) and types.is_string(chunked.type.value_type):
        chunked = chunked.cast(chunked.type.value_type)
    are_views = hasattr(types, "is_string_view") and types.is_string_view(chunked.type)
    if are_views or types.is_string(chunked.type) or types.is_large_string(chunked.type):
        made = Column(where, name, len(chunked), missing=missing)
        made.cells = _arrow_views(chunked) if are_views else _arrow_cells(chunked)
        made.encode = None if are_views else lambda: _arrow_codes(chunked)
        made.texts = lambda most: chunked.slice(0, most).to_pylist()
        return made
    is_number = types.is_integer(chunked.type) or types.is_floating(chunked.type) or types.is_boolean(chunked.type)
    if is_number and missing is None:
        return _of_numpy(where, name, chunked.to_numpy())
    if types.is_fixed_size_list(chunked.type) and missing is None:
        flat = chunked.combine_chunks().flatten()
        if not flat.null_count and (types.is_integer(flat.type) or types.is_floating(flat.type)):
            return _of_numpy(where, name, flat.to_numpy().reshape(len(chunked), chunked.type.list_size))
    return Column(where, name, len(chunked), objects=chunked.to_pylist(), missing=missing)


def _arrow_cells(chunked: Any) -> TextCells:
    import pyarrow.types as types

    size = 8 if types.is_large_string(chunked.type) else 4
    chunks = []
    for chunk in chunked.chunks:
        if len(chunk) == 0:
            continue
        _, offsets, data = chunk.buffers()
        chunks.append((len(chunk), offsets.address + chunk.offset * size, size, data.address if data else 0))
    return _engine.text_cells_of_arrow(chunks, chunked)


def _arrow_views(chunked: Any) -> TextCells:
    chunks = []
    for chunk in chunked.chunks:
        if len(chunk) == 0:
            continue
        _, views, *buffers = chunk.buffers()
        at = views.address + chunk.offset * 16  # bytes of a view
        chunks.append((len(chunk), at, [buffer.address for buffer in buffers]))
    return _engine.text_cells_of_arrow_views(chunks, chunked)


def _arrow_codes(chunked: Any) -> tuple[Any, list[str]]:
    import pyarrow

    encoded = pyarrow.compute.dictionary_encode(chunked).unify_dictionaries()
    chunks = [chunk for chunk in encoded.chunks if len(chunk)]
    codes = pyarrow.chunked_array([chunk.indices for chunk in chunks]).to_numpy()
    return codes, chunks[0].dictionary.to_pylist()


def _of_numpy(where: str, name: str, array: Any) -> Column:
    import numpy

    array = numpy.asarray(array)
    if array.ndim == 0:
        raise ConfigError(f"{where}: {name} is a single value, not one value per sample: {array!r}")
    if array.dtype.kind not in "biufU":
        return _of_list(where, name, array.tolist())
    if array.dtype.kind == "U" and array.ndim > 1:
        return _of_list(where, name, array.tolist())
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


def _with_codes(where: str, name: str, codes: Any, names: list[str]) -> Column:
    absent = codes < 0
    missing = int(absent.argmax()) if absent.any() else None
    return Column(where, name, len(codes), codes=codes, names=names, missing=missing)


def _of_list(where: str, name: str, values: list[Any]) -> Column:
    import numpy

    made = Column(where, name, len(values))
    kinds = set(map(type, values))
    if kinds and all(issubclass(kind, str | bytes) for kind in kinds):
        return _with_text(made, values)
    if kinds and all(issubclass(kind, str | bytes | os.PathLike) for kind in kinds):
        return _with_text(made, [os.fspath(value) for value in values])
    made.missing = next((row for row, value in enumerate(values) if is_missing(value)), None) if kinds else None
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
    made.objects = values
    return made


def _with_text(made: Column, values: list[Any]) -> Column:
    cells = _engine.text_cells_of_list(values)
    if isinstance(cells, int):
        made.fail(cells, f"is {shown(values[cells])}, which is not text")
    made.cells, made.texts = cells, lambda most: values[:most] if most else values
    return made


def is_missing(value: Any) -> bool:
    """Returns whether a value is None, NaN, pandas' NA or NaT."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def fail_mixed(column: Column, wanted: str) -> NoReturn:
    """Raises the error that a column of objects has values of different types, or of a wrong one."""
    values = column.objects or []
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
    """Returns the values of a column whose rows are all lists; None if one is not."""
    values = column.objects
    if values is None or not all(isinstance(value, list | tuple) or hasattr(value, "__array__") for value in values):
        return None
    return [value.tolist() if hasattr(value, "tolist") else value for value in values]
