# SPDX-License-Identifier: Apache-2.0
"""The files of a sample as the columns of an MDS dataset, which are the same in all of its samples.

========================= ==================================== =================================
file                      column                               encoding
========================= ==================================== =================================
``jpg``, the only image   ``image``                            ``jpeg``; ``png`` where it is one
``cls``, a class          ``label``                            ``int``
``txt``, ``json``         ``txt``, ``json``                    ``str``, ``json``
``seg.png``, ``a.b.txt``  ``seg``, ``a.b``                     by its last extension
``boxes.npy``             ``boxes``                            ``ndarray``; a number without a
                                                               dimension: its dtype
anything else             as its extension: ``mp4``, ``x.pth`` ``bytes``
========================= ==================================== =================================

The first sample that can be read says which columns there are. Readers tell images by what they hold, so that a PNG
may stand in a column of JPEGs.
"""

from __future__ import annotations

import io
import struct
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import ConfigError, DataError

Content = list[tuple[str, bytes]]  # files: extension and bytes
KEY = "__key__"
_IMAGES = ("jpg", "jpeg", "png", "webp", "bmp", "gif", "tif", "tiff", "avif", "ppm", "pgm", "jp2")
_CLASSES = ("cls", "cls2", "class", "index", "inx", "id")
_TEXTS = ("txt", "text", "transcript")
_JSON = ("json", "jsn")
_TYPED = (*_IMAGES, *_CLASSES, *_TEXTS, *_JSON, "npy", "bin")
_MOST_BYTES = 2**32 - 1  # of a value, a sample and a shard: sizes and offsets have 32 bits
_DTYPES = {"uint8": 8, "int8": 9, "uint16": 16, "int16": 17, "float16": 18, "uint32": 32, "int32": 33}
_DTYPES |= {"float32": 34, "uint64": 64, "int64": 65, "float64": 66}  # and what stands for them in front of an array
_SIZES = {"int": 8} | {name: np.dtype(name).itemsize for name in _DTYPES}


class Columns:
    """Of a dataset. ``encodings``: by name, in the order in which they stand in a sample."""

    def __init__(self, encodings: dict[str, str]) -> None:
        self.encodings = dict(sorted(encodings.items()))
        self.names = list(self.encodings)
        self.sizes = [_SIZES.get(encoding) for encoding in self.encodings.values()]

    @staticmethod
    def of_sample(label: int | None, files: Content, with_key: bool) -> Columns:
        """Those that hold this sample. Raises ConfigError where two files would be one column."""
        names = _names([extension for extension, _ in files], label)
        encodings = {name: _encoding(extension, data) for name, (extension, data) in zip(names, files, strict=True)}
        if label is not None:
            encodings["label"] = "int"
        if with_key:
            encodings[KEY] = "str"
        if len(encodings) < len(names) + (label is not None) + with_key:
            raise ConfigError(
                f"pack: two of a sample's files would be one column: {', '.join(extension for extension, _ in files)}; "
                "name one of them otherwise"
            )
        return Columns(encodings)

    def sample(self, key: str, label: int | None, files: Content) -> bytes:
        """Sizes of those values whose encoding says none, and the values.

        Raises DataError where it has other columns, or a value that its column cannot hold.
        """
        names = _names([extension for extension, _ in files], label)
        values = {name: data for name, (_, data) in zip(names, files, strict=True)}
        if label is not None:
            values["label"] = str(label).encode()
        if KEY in self.encodings:
            values[KEY] = key.encode("utf-8", "backslashreplace")
        if values.keys() != self.encodings.keys():
            raise self._differs(key, values)
        sizes, stored = [], []
        for (name, encoding), size in zip(self.encodings.items(), self.sizes, strict=True):
            try:
                value = _ENCODE.get(encoding, _number if encoding in _DTYPES else _as_it_is)(values[name], encoding)
            except ValueError as error:
                raise DataError(
                    f"pack: the column '{name}' ({encoding}) cannot hold what sample {key} has for it: {error}",
                    key=key,
                    stage="format",
                ) from None
            if size is None:
                sizes.append(len(value))
            stored.append(value)
        if sum(map(len, stored)) + 4 * len(sizes) > _MOST_BYTES:
            raise DataError(f"pack: sample {key} is larger than the 4 GiB that MDS can hold", key=key, stage="format")
        return b"".join([struct.pack(f"<{len(sizes)}I", *sizes), *stored])

    def planned(self, key: str, label: int | None, sizes: Sequence[tuple[str, int]]) -> int:
        """The size of :meth:`sample`, by those of its files. Raises ConfigError where they do not say it."""
        names = _names([extension for extension, _ in sizes], label)
        own = {name: size for name, (_, size) in zip(names, sizes, strict=True)}
        if label is not None:
            own["label"] = 8
        if KEY in self.encodings:
            own[KEY] = len(key.encode("utf-8", "backslashreplace"))
        if own.keys() != self.encodings.keys():
            raise self._differs(key, own)
        taken = 0
        for (name, encoding), size in zip(self.encodings.items(), self.sizes, strict=True):
            if encoding == "ndarray":
                raise ConfigError(
                    f"pack: a range of shards by size takes sizes that are known before, and those of the arrays of "
                    f"'{name}' are not; give samples_per_shard (--samples-per-shard)"
                )
            taken += own[name] + 4 if size is None else size
        return taken

    def _differs(self, key: str, values: dict[str, bytes] | dict[str, int]) -> DataError:
        lacks = sorted(self.encodings.keys() - values.keys())
        more = sorted(values.keys() - self.encodings.keys())
        said = [f"lacks {', '.join(lacks)}"] if lacks else []
        said += [f"has {', '.join(more)} besides"] if more else []
        return DataError(
            f"pack: all samples of an MDS dataset have the same columns ({', '.join(self.names)}), and sample {key} "
            f'{" and ".join(said)}; pack it as tars, or leave such samples out with on_error="skip"',
            key=key,
            stage="format",
        )


def _names(extensions: Sequence[str], label: int | None) -> list[str]:
    """What the columns of files are called; a name that two would have is the whole extension of each."""
    images = sum(extension in _IMAGES for extension in extensions)
    names = []
    for extension in extensions:
        stem, _, last = extension.rpartition(".")
        if extension in _IMAGES and images == 1:
            names.append("image")
        elif extension == "cls" and label is None:
            names.append("label")
        else:
            names.append(stem if stem and last in _TYPED else extension)
    counts = Counter(names)
    return [name if counts[name] == 1 else extension for name, extension in zip(names, extensions, strict=True)]


def _encoding(extension: str, data: bytes) -> str:
    last = extension.rpartition(".")[2]
    if last in _IMAGES:
        return "png" if data.startswith(b"\x89PNG") else "jpeg"
    for names, encoding in ((_CLASSES, "int"), (_TEXTS, "str"), (_JSON, "json")):
        if last in names:
            return encoding if _can_be(encoding, data) else "bytes"
    if last != "npy":
        return "bytes"
    try:
        array = _array_in(data)
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


def _array_in(data: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    array: np.ndarray[tuple[int, ...], np.dtype[np.generic]] = np.load(io.BytesIO(data), allow_pickle=False)
    if array.dtype.name not in _DTYPES or array.ndim > 63:
        raise ValueError(f"MDS has no arrays of {array.dtype.name} with {array.ndim} dimensions")
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)


def _ndarray(data: bytes, encoding: str) -> bytes:
    """Dtype, dimensions * 4 + log2 of an extent's bytes, extents, numbers."""
    array = _array_in(data)
    if not array.ndim:
        raise ValueError("a number without a dimension, where the first sample has an array")
    extent = next(power for power in range(4) if max(array.shape) < 1 << (8 << power))
    shape = np.array(array.shape, f"<u{1 << extent}").tobytes()
    return bytes([_DTYPES[array.dtype.name], array.ndim << 2 | extent]) + shape + array.tobytes()


def _number(data: bytes, encoding: str) -> bytes:
    array = _array_in(data)
    if array.ndim or array.dtype.name != encoding:
        raise ValueError(f"an array of {array.dtype.name} with {array.ndim} dimensions")
    return array.tobytes()


_ENCODE: dict[str, Callable[[bytes, str], bytes]] = {
    "int": _int, "str": _utf8, "json": _utf8, "ndarray": _ndarray,
}  # fmt: skip
