# SPDX-License-Identifier: Apache-2.0
"""Numeric columns of Hugging Face's datasets with `with_format("torch")`, whose rows are read from Arrow's own memory.

datasets converts all integers to int64 and all floats to float32, unless the format specifies a dtype.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import torch

from .arrays import Table

_DTYPES = {
    **{name: (name, torch.int64) for name in ("int8", "int16", "int32", "int64", "uint8")},
    "float": ("float32", torch.float32),
    "double": ("float64", torch.float32),
    "halffloat": ("float16", torch.float32),
}
_LISTS = ("list<", "large_list<", "fixed_size_list<")


class ArrowColumns(Table):
    """Columns of a table, with the same chunks as in Arrow. A batch is a dict of columns."""

    as_list = False

    def __init__(self, leaf: Any) -> None:
        """Raises:
        ValueError: a column does not consist of numbers or lists of numbers of one length; the message is the reason.
        """
        _check_format(leaf)
        names = [name for name in leaf.column_names if leaf._format_columns is None or name in leaf._format_columns]
        if not names:
            raise ValueError("the format has no columns")
        self.names = tuple(names)
        self._owner = leaf._data
        self._columns = [_Column(name, leaf._data.column(name)) for name in names]
        self.name = "Dataset of Arrow columns"
        self.mapped = type(leaf._data).__name__ != "InMemoryTable"
        self.columns = [(torch.Size(column.shape), column.given) for column in self._columns]
        self._rows = None
        if leaf._indices is not None:
            self._rows = torch.from_numpy(leaf._indices.column("indices").to_numpy().astype(numpy.int64))

    def gather(self, rows: torch.Tensor) -> list[torch.Tensor]:
        if len(rows) and int(rows.min()) < 0:
            raise IndexError("negative rows count from the end")
        picked = rows if self._rows is None else self._rows[rows]
        return [column.gather(picked) for column in self._columns]


def columns_of(leaf: Any) -> ArrowColumns | str:
    """Returns the columns of a `datasets.Dataset` as a table, or the reason why this is not possible."""
    try:
        return ArrowColumns(leaf)
    except ValueError as error:
        return str(error)


def _check_format(leaf: Any) -> None:
    if leaf._format_type != "torch":
        raise ValueError(f"the dataset's format is {leaf._format_type or 'Python'}, not torch")
    if leaf._format_kwargs:
        raise ValueError('with_format("torch") has more arguments')
    if leaf._output_all_columns:
        raise ValueError("output_all_columns=True")


class _Column:
    """The rows of one column.

    Attributes:
        shape: shape of a row.
        given: the dtype to which datasets converts the column.
    """

    def __init__(self, name: str, column: Any) -> None:
        kind = str(column.type)
        is_list = kind.startswith(_LISTS)
        numbers = str(column.type.value_type) if is_list else kind
        if numbers not in _DTYPES:
            raise ValueError(f'the column "{name}" is {kind}, which is neither numbers nor lists of numbers')
        stored, self.given = _DTYPES[numbers]
        pieces = [_rows_of(name, chunk, stored, is_list) for chunk in column.chunks if len(chunk)]
        if not pieces:
            raise ValueError(f'the column "{name}" has no rows')
        if any(piece.shape[1:] != pieces[0].shape[1:] for piece in pieces):
            raise ValueError(f'the lists of the column "{name}" have different lengths')
        self.shape = pieces[0].shape[1:]
        self._pieces = pieces
        self._ends = torch.tensor([len(piece) for piece in pieces]).cumsum(0)

    def gather(self, rows: torch.Tensor) -> torch.Tensor:
        """Copies the given rows (int64) to new memory.

        Raises:
            IndexError: a row is out of range.
        """
        if len(self._pieces) == 1:
            return self._pieces[0].index_select(0, rows).to(self.given)
        owner = torch.searchsorted(self._ends, rows, right=True)
        out = torch.empty((len(rows), *self.shape), dtype=self._pieces[0].dtype)
        for piece in owner.unique().tolist():
            if piece == len(self._pieces):
                raise IndexError("a row is out of range")
            here = (owner == piece).nonzero()[:, 0]
            start = int(self._ends[piece - 1]) if piece else 0
            out.index_copy_(0, here, self._pieces[piece].index_select(0, rows[here] - start))
        return out.to(self.given)


def _rows_of(name: str, chunk: Any, dtype: str, is_list: bool) -> torch.Tensor:
    """Returns the rows of a chunk, of shape (rows,) or (rows, length), in Arrow's own memory."""
    if chunk.null_count:
        raise ValueError(f'the column "{name}" has null rows')
    values, width = chunk, 0
    if is_list:
        width, values = _lists_of(name, chunk)
    if values.null_count:
        raise ValueError(f'the column "{name}" has null numbers')
    size = numpy.dtype(dtype).itemsize
    numbers = numpy.frombuffer(values.buffers()[1], dtype, len(values), values.offset * size)
    numbers.flags.writeable = False
    tensor = _tensor_of(numbers)
    return tensor.reshape(len(chunk), width) if is_list else tensor


def _lists_of(name: str, chunk: Any) -> tuple[int, Any]:
    """Returns the length of the lists in a chunk, and all their numbers concatenated."""
    if str(chunk.type).startswith("fixed_size_list"):
        return chunk.type.list_size, chunk.flatten()
    dtype = numpy.dtype(numpy.int64 if str(chunk.type).startswith("large") else numpy.int32)
    offsets = numpy.frombuffer(chunk.buffers()[1], dtype, len(chunk) + 1, chunk.offset * dtype.itemsize)
    lengths = numpy.diff(offsets)
    if (lengths != lengths[0]).any() or lengths[0] == 0:
        raise ValueError(f'the lists of the column "{name}" have different lengths')
    return int(lengths[0]), chunk.values[int(offsets[0]) : int(offsets[-1])]


def _tensor_of(numbers: Any) -> torch.Tensor:
    """Suppresses torch's warning about read-only memory, because the memory is not written to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.from_numpy(numbers)
