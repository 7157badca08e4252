# SPDX-License-Identifier: Apache-2.0
"""Megatron's ``.bin`` and ``.idx`` files, index version 1.

``.bin`` has the tokens of all sequences. ``.idx`` has, little-endian: the magic, a u64 version, a u8 code of the dtype,
u64 numbers of sequences and of document indices, then the sequences' lengths (i32), their byte offsets in ``.bin``
(i64), and the document indices (i64): the number of the first sequence of each document, and the number of sequences.
Here a sequence is a document.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_CHUNK = 1 << 20  # numbers written at a time
LONGEST = 2**31 - 1  # tokens of a sequence, whose length is an i32


class TokenType(NamedTuple):
    """A dtype of tokens, its code in the index, and the number of ids that it holds."""

    name: str
    code: int
    size: int


_TYPES = (TokenType("uint16", 8, 2**16), TokenType("int32", 4, 2**31))


def smallest_type(size: int | None) -> TokenType | None:
    """Returns the smallest dtype for a vocabulary of ``size`` tokens, int32 if the size is None, or None if no dtype is
    large enough.
    """
    wanted = _TYPES[-1].size if size is None else size
    return next((one for one in _TYPES if wanted <= one.size), None)


def write_index(file: BinaryIO, dtype: TokenType, lengths_in: Iterator[BinaryIO], sequences: int) -> None:
    """Writes an index.

    Args:
        file: output.
        dtype: dtype of the tokens in the ``.bin`` file.
        lengths_in: files of i32 lengths, which are concatenated; they are read twice, so each must be seekable.
        sequences: total number of lengths.
    """
    files = list(lengths_in)
    file.write(_MAGIC + struct.pack("<QBQQ", _VERSION, dtype.code, sequences, sequences + 1))
    for lengths in _chunks(files):
        file.write(lengths.tobytes())
    offset, itemsize = 0, np.dtype(dtype.name).itemsize
    for lengths in _chunks(files):
        ends = offset + np.cumsum(lengths, dtype=np.int64) * itemsize
        file.write(np.concatenate(([offset], ends[:-1])).astype("<i8").tobytes())
        offset = int(ends[-1])
    for begin in range(0, sequences + 1, _CHUNK):
        file.write(np.arange(begin, min(begin + _CHUNK, sequences + 1), dtype="<i8").tobytes())


def _chunks(files: list[BinaryIO]) -> Iterator[np.ndarray]:
    for file in files:
        file.seek(0)
        while content := file.read(4 * _CHUNK):
            yield np.frombuffer(content, "<i4")
