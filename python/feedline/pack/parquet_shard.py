# SPDX-License-Identifier: Apache-2.0
"""Writes Parquet files with pyarrow, with the features of `datasets` in their metadata.

=============================== ======================================
column                          type
=============================== ======================================
``image``, the only image       struct of ``bytes`` and ``path``
other images, other bytes       binary
texts, JSON                     string
``int``, a number of an array   int64, the dtype of the array
an array (N,), an array (N, K)  list, list of lists of K numbers
other arrays                    binary: the .npy file
=============================== ======================================
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..data import image_formats
from ..errors import ConfigError
from .mds_columns import DTYPES, Columns, Content, array_in
from .shard_file import AtomicFile, sha256_of

_GROUP_BYTES = 1 << 25  # values in a row group, which stay in memory until the group is written
_MOST_LISTS = 2  # levels of nested lists, one per dimension of an array
_INT64 = range(-(2**63), 2**63)


class ParquetFile(AtomicFile):
    """A Parquet file. The content of a sample is the values of its columns."""

    def __init__(self, path: Path, columns: Columns, classes: Sequence[str]) -> None:
        self._arrow = pyarrow()
        from pyarrow import parquet

        self._columns = columns
        self._schema = _schema(self._arrow, columns, classes)
        super().__init__(path)
        self._writer = parquet.ParquetWriter(
            self._file, self._schema, compression="NONE", use_dictionary=False, write_page_index=True
        )
        self._rows: dict[str, list[Any]] = {name: [] for name in columns.names}
        self._waiting = 0  # bytes in `_rows`

    def take(self, content: Content) -> None:
        for name, data in content:
            self._rows[name].append(_value(self._columns, name, data))
        size = sum(len(data) for _, data in content)
        self.bytes += size
        self._waiting += size
        if self._waiting >= _GROUP_BYTES:
            self._write_group()

    def commit(self) -> str:
        self._write_group()
        self._writer.close()
        self.bytes = self._file.tell()
        super().commit()
        return sha256_of(self.path)

    def discard(self) -> None:
        self._writer.is_open = False  # its destructor would write a footer
        super().discard()

    def _write_group(self) -> None:
        rows = len(self._rows[self._columns.names[0]])
        if rows:
            self._writer.write_table(self._arrow.table(self._rows, schema=self._schema), row_group_size=rows)
            self._rows = {name: [] for name in self._columns.names}
            self._waiting = 0


def pyarrow() -> Any:
    """Imports and returns pyarrow. Raises ConfigError if it is not installed."""
    try:
        import pyarrow as arrow
    except ImportError:
        raise ConfigError('pack: to="parquet" needs the package pyarrow: pip install pyarrow') from None
    return arrow


def check(columns: Columns, key: str, values: dict[str, bytes]) -> None:
    """Raises DataError if a value does not fit in its column."""
    for name, data in values.items():
        try:
            value = _value(columns, name, data)
            if columns.encodings[name] == "int" and value not in _INT64:
                raise ValueError(f"{value} has more than 64 bits")
            if name in columns.arrays or columns.encodings[name] in DTYPES:
                array = array_in(data)
                columns.check_array(name, array)
                if array.ndim == _MOST_LISTS and array.shape[-1] != columns.arrays[name][-1]:
                    raise ValueError(
                        f"rows of {array.shape[-1]} numbers, but those of the first sample have "
                        f"{columns.arrays[name][-1]}"
                    )
        except ValueError as error:
            raise columns.cannot_hold(name, key, error) from None


def is_npy(columns: Columns, name: str) -> bool:
    """Whether a column's arrays are stored as .npy files."""
    return name in columns.arrays and columns.arrays[name][1] > _MOST_LISTS


def _is_image(columns: Columns, name: str) -> bool:
    return name == "image" and columns.encodings[name] in image_formats.NAMES


def _value(columns: Columns, name: str, data: bytes) -> Any:
    encoding = columns.encodings[name]
    if encoding == "int":
        return int(data)
    if encoding in ("str", "json"):
        return data.decode()
    if _is_image(columns, name):
        return {"bytes": data, "path": None}
    if name in columns.arrays and not is_npy(columns, name):
        array = array_in(data)
        return array if array.ndim == 1 else list(array)
    return array_in(data)[()] if encoding in DTYPES else data


def _schema(arrow: Any, columns: Columns, classes: Sequence[str]) -> Any:
    names = [name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name in classes]
    features: dict[str, Any] = {}
    if "image" in columns.names and _is_image(columns, "image"):
        features["image"] = {"_type": "Image"}
    if names and columns.encodings.get("label") == "int":
        features["label"] = {"names": names, "_type": "ClassLabel"}
    types = [(name, _type(arrow, columns, name)) for name in columns.names]
    # `datasets` requires the features of all columns, or none
    for name, _ in types:
        features.setdefault(name, _feature_of(columns, name))
    metadata = {"huggingface": json.dumps({"info": {"features": {name: features[name] for name, _ in types}}})}
    return arrow.schema(types, metadata=metadata)


def _type(arrow: Any, columns: Columns, name: str) -> Any:
    encoding = columns.encodings[name]
    if encoding in ("str", "json"):
        return arrow.string()
    if _is_image(columns, name):
        return arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    if name in columns.arrays and not is_npy(columns, name):
        dtype, dimensions, extent = columns.arrays[name]
        number = _number_type(arrow, dtype)
        return arrow.list_(number if dimensions == 1 else arrow.list_(number, extent))  # keeps the shape (0, extent)
    return (
        _number_type(arrow, "int64" if encoding == "int" else encoding)
        if encoding in ("int", *DTYPES)
        else (arrow.binary())
    )


def _number_type(arrow: Any, dtype: str) -> Any:
    return getattr(arrow, dtype)()


def _feature_of(columns: Columns, name: str) -> Any:
    """Returns the feature of `datasets` for a column."""
    encoding = columns.encodings[name]
    if name in columns.arrays and not is_npy(columns, name):
        dtype, dimensions, extent = columns.arrays[name]
        feature: dict[str, Any] = {"dtype": dtype, "_type": "Value"}
        if dimensions == _MOST_LISTS:
            feature = {"feature": feature, "length": extent, "_type": "List"}
        return {"feature": feature, "_type": "List"}
    dtype = {"int": "int64", "str": "string", "json": "string"}.get(encoding, encoding)
    return {"dtype": dtype if dtype in ("string", "int64", *DTYPES) else "binary", "_type": "Value"}
