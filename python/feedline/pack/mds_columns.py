# SPDX-License-Identifier: Apache-2.0
"""Converts the files of a sample to columns; all samples in a dataset have the same columns. The encodings are MDS's.

========================= ==================================== =================================
file                      column                               encoding
========================= ==================================== =================================
``jpg``, the only image   ``image``                            ``jpeg``; ``png`` for a PNG
``cls``, a class          ``label``                            ``int``
``txt``, ``json``         ``txt``, ``json``                    ``str``, ``json``
``seg.png``, ``a.b.txt``  ``seg``, ``a.b``                     by its last extension
``boxes.npy``             ``boxes``                            ``ndarray``; the dtype for a 0-d
                                                               array
anything else             as its extension: ``mp4``, ``x.pth`` ``bytes``
========================= ==================================== =================================

The first readable sample defines the columns. Readers recognise images by content, so that a column of JPEGs may also
contain PNGs.
"""

from __future__ import annotations

import io
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _engine
from ..data.image_formats import EXTENSIONS
from ..errors import ConfigError, DataError

Content = list[tuple[str, bytes]]  # files: extension and bytes
KEY = "__key__"
_CLASSES = ("cls", "cls2", "class", "index", "inx", "id")
_TEXTS = ("txt", "text", "transcript")
_JSON = ("json", "jsn")
_TYPED = (*EXTENSIONS, *_CLASSES, *_TEXTS, *_JSON, "npy", "bin")
_MOST_BYTES = 2**32 - 1  # limit of a value, a sample and a shard: sizes and offsets have 32 bits
DTYPES = {"uint8": 8, "int8": 9, "uint16": 16, "int16": 17, "float16": 18, "uint32": 32, "int32": 33}
DTYPES |= {"float32": 34, "uint64": 64, "int64": 65, "float64": 66}  # and their codes in an array's header
_SIZES = {"int": 8} | {name: np.dtype(name).itemsize for name in DTYPES}


class Columns:
    """The columns of a dataset.

    Attributes:
        encodings: encoding of each column by name, in storage order.
        arrays: dtype, number of dimensions and last extent (0 without dimensions) of each array column, from the first
            sample.
        format: name of the format, for messages.
    """

    def __init__(
        self, encodings: dict[str, str], arrays: dict[str, tuple[str, int, int]] | None = None, format: str = "MDS"
    ) -> None:
        self.format = format
        self.arrays = arrays or {}
        self.encodings = dict(sorted(encodings.items()))
        self.names = list(self.encodings)
        self.sizes = [_SIZES.get(encoding) for encoding in self.encodings.values()]

    @staticmethod
    def of_sample(label: int | None, files: Content, with_key: bool, format: str = "MDS") -> Columns:
        """Returns the columns for this sample. Raises ConfigError if two files map to the same column."""
        names = _names([extension for extension, _ in files], label)
        encodings = {name: _encoding(extension, data) for name, (extension, data) in zip(names, files, strict=True)}
        arrays = {
            name: _form_of(data)
            for (name, encoding), (_, data) in zip(encodings.items(), files, strict=True)
            if encoding == "ndarray"
        }
        if label is not None:
            encodings["label"] = "int"
        if with_key:
            encodings[KEY] = "str"
        if len(encodings) < len(names) + (label is not None) + with_key:
            raise ConfigError(
                "pack: two files of a sample map to the same column: "
                f"{', '.join(extension for extension, _ in files)}; rename one of them"
            )
        return Columns(encodings, arrays, format)

    def sample(self, key: str, label: int | None, files: Content) -> bytes:
        """Encodes a sample as the sizes of variable-size values, followed by the values.

        Raises DataError if the sample has different columns, or a value does not fit in its column.
        """
        values = self.values(key, label, files)
        sizes, stored = [], []
        for (name, encoding), size in zip(self.encodings.items(), self.sizes, strict=True):
            try:
                value = _ENCODE.get(encoding, _number if encoding in DTYPES else _as_it_is)(values[name], encoding)
            except ValueError as error:
                raise self.cannot_hold(name, key, error) from None
            if size is None:
                sizes.append(len(value))
            stored.append(value)
        if sum(map(len, stored)) + 4 * len(sizes) > _MOST_BYTES:
            raise DataError(f"pack: sample {key} is larger than MDS's limit of 4 GiB", key=key, stage="format")
        return b"".join([struct.pack(f"<{len(sizes)}I", *sizes), *stored])

    def values(self, key: str, label: int | None, files: Content) -> dict[str, bytes]:
        """Returns the bytes of each column, as in the files. Raises DataError if the sample has different columns."""
        names = _names([extension for extension, _ in files], label)
        values = {name: data for name, (_, data) in zip(names, files, strict=True)}
        if label is not None:
            values["label"] = str(label).encode()
        if KEY in self.encodings:
            values[KEY] = key.encode("utf-8", "backslashreplace")
        if values.keys() != self.encodings.keys():
            raise self._differs(key, values)
        return values

    def sizes_of(self, key: str, label: int | None, sizes: Sequence[tuple[str, int]]) -> dict[str, int]:
        """Returns the number of bytes of each column, as in the files. Raises DataError like :meth:`values`."""
        names = _names([extension for extension, _ in sizes], label)
        own = {name: size for name, (_, size) in zip(names, sizes, strict=True)}
        if label is not None:
            own["label"] = len(str(label))
        if KEY in self.encodings:
            own[KEY] = len(key.encode("utf-8", "backslashreplace"))
        if own.keys() != self.encodings.keys():
            raise self._differs(key, own)
        return own

    def cannot_hold(self, name: str, key: str, why: Exception) -> DataError:
        """Returns the error for a value that does not fit in its column."""
        return DataError(
            f"pack: the column '{name}' ({self.encodings[name]}) cannot hold the value of sample {key}: {why}",
            key=key,
            stage="format",
        )

    def check_array(self, name: str, array: np.ndarray[Any, Any]) -> None:
        """Raises ValueError if an array has a different dtype or number of dimensions than in the first sample."""
        wanted = self.arrays.get(name, (self.encodings[name], 0))[:2]
        if (array.dtype.name, array.ndim) != wanted:
            raise ValueError(
                f"an array of {array.dtype.name} with {array.ndim} dimensions, but the first sample has {wanted[0]} "
                f"with {wanted[1]}"
            )

    def planned(self, key: str, label: int | None, sizes: Sequence[tuple[str, int]]) -> int:
        """Returns the size of the result of :meth:`sample` for files of these sizes. Raises ConfigError if this size
        depends on more than the file sizes.
        """
        own = self.sizes_of(key, label, sizes)
        taken = 0
        for (name, encoding), size in zip(self.encodings.items(), self.sizes, strict=True):
            if encoding == "ndarray":
                raise ConfigError(
                    "pack: shard_range with shards limited by size requires known sizes, but the sizes of the "
                    f"arrays in '{name}' are unknown; pass samples_per_shard (--samples-per-shard)"
                )
            taken += own[name] + 4 if size is None else size
        return taken

    def _differs(self, key: str, values: dict[str, bytes] | dict[str, int]) -> DataError:
        lacks = sorted(self.encodings.keys() - values.keys())
        more = sorted(values.keys() - self.encodings.keys())
        said = [f"lacks {', '.join(lacks)}"] if lacks else []
        said += [f"also has {', '.join(more)}"] if more else []
        return DataError(
            f"pack: all samples packed as {self.format} need the same columns ({', '.join(self.names)}), but "
            f'sample {key} {" and ".join(said)}; pack it as tars, or leave such samples out with on_error="skip"',
            key=key,
            stage="format",
        )


def _names(extensions: Sequence[str], label: int | None) -> list[str]:
    """Returns the column names of the files; an ambiguous name is replaced by the whole extension."""
    images = sum(extension in EXTENSIONS for extension in extensions)
    names = []
    for extension in extensions:
        stem, _, last = extension.rpartition(".")
        if extension in EXTENSIONS and images == 1:
            names.append("image")
        elif extension == "cls" and label is None:
            names.append("label")
        else:
            names.append(stem if stem and last in _TYPED else extension)
    counts = Counter(names)
    return [name if counts[name] == 1 else extension for name, extension in zip(names, extensions, strict=True)]


def _encoding(extension: str, data: bytes) -> str:
    last = extension.rpartition(".")[2]
    if last in EXTENSIONS:
        return "png" if _engine.image_format_of(data) == "png" else "jpeg"
    for names, encoding in ((_CLASSES, "int"), (_TEXTS, "str"), (_JSON, "json")):
        if last in names:
            return encoding if _can_be(encoding, data) else "bytes"
    if last != "npy":
        return "bytes"
    try:
        array = array_in(data)
    except ValueError:
        return "bytes"
    return "ndarray" if array.ndim else array.dtype.name


def _can_be(encoding: str, data: bytes) -> bool:
    try:
        _ENCODE[encoding](data, encoding)
    except ValueError:
        return False
    return True


def _as_it_is(data: bytes, encoding: str) -> bytes:
    return data


def _int(data: bytes, encoding: str) -> bytes:
    try:
        return struct.pack("<q", int(data))
    except struct.error:
        raise ValueError(f"{int(data)} has more than 64 bits") from None


def _utf8(data: bytes, encoding: str) -> bytes:
    data.decode()
    return data


def array_in(data: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Returns the array in a .npy file, with little-endian elements. Raises ValueError for an unsupported dtype."""
    array: np.ndarray[tuple[int, ...], np.dtype[np.generic]] = np.load(io.BytesIO(data), allow_pickle=False)
    if array.dtype.name not in DTYPES or array.ndim > 63:
        raise ValueError(f"arrays of {array.dtype.name} with {array.ndim} dimensions are not supported")
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)


def _form_of(data: bytes) -> tuple[str, int, int]:
    array = array_in(data)
    return array.dtype.name, array.ndim, array.shape[-1] if array.ndim else 0


def _ndarray(data: bytes, encoding: str) -> bytes:
    """Encodes an array as its dtype, one number, its shape, and its elements; the number is 4 * dimensions + log2(bytes
    per dimension size).
    """
    array = array_in(data)
    if not array.ndim:
        raise ValueError("a 0-d array, but the first sample has an array with dimensions")
    extent = next(power for power in range(4) if max(array.shape) < 1 << (8 << power))
    shape = np.array(array.shape, f"<u{1 << extent}").tobytes()
    return bytes([DTYPES[array.dtype.name], array.ndim << 2 | extent]) + shape + array.tobytes()


def _number(data: bytes, encoding: str) -> bytes:
    array = array_in(data)
    if array.ndim or array.dtype.name != encoding:
        raise ValueError(f"an array of {array.dtype.name} with {array.ndim} dimensions")
    return array.tobytes()


_ENCODE: dict[str, Callable[[bytes, str], bytes]] = {
    "int": _int, "str": _utf8, "json": _utf8, "ndarray": _ndarray,
}  # fmt: skip
