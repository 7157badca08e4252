# SPDX-License-Identifier: Apache-2.0
"""Converts columns of data frames, arrays and lists to the forms that the engine reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._engine import TextCells
from ...errors import ConfigError
from .arrow_columns import of_arrow
from .column import Column, OwnedList, shown
from .list_columns import of_list, of_numpy


def column_of(where: str, name: str, raw: Any) -> Column:
    """Converts a list, a NumPy array, a torch tensor, or a column of a pandas, polars or Arrow table.

    Raises ConfigError naming the row if the values have different types.
    """
    module = type(raw).__module__.partition(".")[0]
    if isinstance(raw, FileColumn):
        return raw.column(where)
    if module == "pandas":
        return _of_pandas(where, name, raw)
    if module == "polars":
        return _of_polars(where, name, raw)
    if module == "pyarrow":
        return of_arrow(where, name, raw)
    if hasattr(raw, "data_ptr"):  # a torch tensor
        tensor = raw.detach().cpu()
        return of_numpy(where, name, (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy())
    if hasattr(raw, "__array_interface__"):
        return of_numpy(where, name, raw)
    if isinstance(raw, str | bytes) or not hasattr(raw, "__iter__"):
        raise ConfigError(
            f"{where}: {name} must be a list, an array or a column with one value per sample, not {raw!r}"
        )
    if isinstance(raw, dict | set | frozenset):
        advice = "a list of its keys or values" if isinstance(raw, dict) else "a list, as a set has no order"
        raise ConfigError(f"{where}: {name} is a {type(raw).__name__}; pass {advice}: {shown(raw)}")
    return of_list(where, name, raw if isinstance(raw, OwnedList) else list(raw))


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
            made.written = self.cells if self.holds == "integers" else None  # such as "007"
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
        return of_numpy(where, name, raw.to_numpy())
    array = getattr(raw, "array", raw)
    if hasattr(array, "__arrow_array__") and (
        hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "") == "pyarrow"
    ):
        import pyarrow

        return of_arrow(where, name, pyarrow.chunked_array(array.__arrow_array__()))
    if getattr(dtype, "numpy_dtype", None) is not None and dtype.numpy_dtype.kind in "biuf":
        absent = numpy.asarray(raw.isna())
        if absent.any():
            return Column(where, name, len(raw), objects_of=raw.tolist, missing=int(absent.argmax()))
        return of_numpy(where, name, raw.to_numpy(dtype.numpy_dtype))
    return of_list(where, name, raw.tolist())


def _of_polars(where: str, name: str, raw: Any) -> Column:
    import polars

    if raw.null_count():
        missing = int(raw.is_null().arg_max())
        if raw.dtype in (polars.String, polars.Categorical, polars.Enum) or raw.dtype.is_numeric():
            return Column(where, name, len(raw), objects_of=raw.to_list, missing=missing)
    if raw.dtype.is_numeric() or raw.dtype == polars.Boolean or isinstance(raw.dtype, polars.Array):
        return of_numpy(where, name, raw.to_numpy())
    if raw.dtype in (polars.Categorical, polars.Enum):
        raw = raw.cast(polars.String)
    if raw.dtype in (polars.String, polars.List(polars.String)):
        try:
            return of_arrow(where, name, raw.to_arrow(compat_level=polars.CompatLevel.newest()))
        except ImportError:  # polars needs pyarrow for this
            pass
    return of_list(where, name, raw.to_list())


def _with_codes(where: str, name: str, codes: Any, names: list[str]) -> Column:
    absent = codes < 0
    missing = int(absent.argmax()) if absent.any() else None
    return Column(where, name, len(codes), codes=codes, names=names, missing=missing)
