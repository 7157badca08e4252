# SPDX-License-Identifier: Apache-2.0
"""Writes TFRecord files of tf.train.Example messages, without TensorFlow.

A record is ``u64 length; u32 masked CRC-32C of the length; the message; u32 masked CRC-32C of the message``.

================================= ==================================
column                            feature
================================= ==================================
images, texts, JSON, other bytes  ``bytes_list`` of one value
``int``, a number of an array     ``int64_list`` or ``float_list``
an array (N,) of int64, float32   ``int64_list``, ``float_list``
other arrays                      ``bytes_list``: the .npy file
================================= ==================================
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from .. import _engine
from .mds_columns import DTYPES, Columns, Content, array_in
from .shard_file import AtomicFile

FRAME_BYTES = 16
_LISTS = ("int64", "float32")  # dtypes of arrays that a list holds without loss
_MASK_DELTA = 0xA282EAD8
_BYTES_LIST, _FLOAT_LIST, _INT64_LIST = 1, 2, 3  # fields of tf.train.Feature


class TfrecordFile(AtomicFile):
    """A file of records. The content of a sample is its record."""

    def take(self, content: Content) -> None:
        for _, record in content:
            self._write(record)
            self.bytes += len(record)


def record_of(example: bytes) -> bytes:
    """Returns a record with a message."""
    length = struct.pack("<Q", len(example))
    sums = (struct.pack("<I", masked_crc32c(part)) for part in (length, example))
    return b"".join((length, next(sums), example, next(sums)))


def masked_crc32c(data: bytes) -> int:
    """Returns the masked CRC-32C that TFRecord stores after a length and after the data."""
    crc = _engine.crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def example_of(columns: Columns, key: str, values: dict[str, bytes]) -> bytes:
    """Returns a tf.train.Example with the columns of a sample. Raises DataError if a value does not fit."""
    features = []
    for name in columns.names:
        try:
            feature = _feature(columns, name, values[name])
        except ValueError as error:
            raise columns.cannot_hold(name, key, error) from None
        features.append(_message(1, _message(1, name.encode()) + _message(2, feature)))
    return _message(1, b"".join(features))


def is_npy(columns: Columns, name: str) -> bool:
    """Whether a column's arrays are stored as .npy files, because no list holds them without loss."""
    if name in columns.arrays:
        dtype, dimensions, _ = columns.arrays[name]
        return dimensions != 1 or dtype not in _LISTS
    return columns.encodings[name] in ("uint64", "float16", "float64")


def _feature(columns: Columns, name: str, data: bytes) -> bytes:
    encoding = columns.encodings[name]
    if encoding == "int":
        return _integers([int(data)])
    if encoding in ("str", "json"):
        data.decode()
    if name not in columns.arrays and encoding not in DTYPES:
        return _message(_BYTES_LIST, _message(1, data))
    array = array_in(data)
    columns.check_array(name, array)
    if is_npy(columns, name):
        return _message(_BYTES_LIST, _message(1, data))
    if array.dtype.name == "float32":
        return _message(_FLOAT_LIST, _message(1, array.astype("<f4").tobytes()))
    return _integers(array.reshape(-1).tolist())


def _integers(values: Sequence[int]) -> bytes:
    if any(not -(2**63) <= value < 2**63 for value in values):
        raise ValueError("a number has more than 64 bits")
    return _message(_INT64_LIST, _message(1, b"".join(_varint(value & 2**64 - 1) for value in values)))


def _message(number: int, content: bytes) -> bytes:
    """Returns a length-delimited field of a protocol buffer."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
