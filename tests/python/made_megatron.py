# SPDX-License-Identifier: Apache-2.0
"""Writes Megatron's .bin and .idx files from their layout, with NumPy."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

CODES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float64": 6, "float32": 7, "uint16": 8}


def write(
    path: Path,
    sequences: Sequence[Sequence[int]],
    dtype: str = "int32",
    documents: Sequence[int] | None = None,
    modes: Sequence[int] | None = None,
) -> str:
    """Writes PATH.bin and PATH.idx, and returns the name of the index.

    `documents`: the first sequence of each document, and the number of sequences; by default one document each.
    """
    tokens = [np.asarray(sequence, dtype) for sequence in sequences]
    path.with_suffix(".bin").write_bytes(b"".join(part.tobytes() for part in tokens))
    lengths = np.array([len(part) for part in tokens], "<i4")
    return _write_index(path, lengths, dtype, documents, modes)


def write_lengths(path: Path, lengths: np.ndarray, dtype: str = "uint16") -> str:
    """Like write(), for tokens that are all 0 and take no space on the disk."""
    with path.with_suffix(".bin").open("wb") as file:
        os.truncate(file.fileno(), int(lengths.sum()) * np.dtype(dtype).itemsize)
    return _write_index(path, lengths.astype("<i4"), dtype, None, None)


def _write_index(
    path: Path, lengths: np.ndarray, dtype: str, documents: Sequence[int] | None, modes: Sequence[int] | None
) -> str:
    ends = np.cumsum(lengths, dtype="<i8") * np.dtype(dtype).itemsize
    offsets = np.concatenate([np.zeros(1, "<i8"), ends[:-1]])[: len(lengths)]
    firsts = np.asarray(range(len(lengths) + 1) if documents is None else documents, "<i8")
    index = path.with_suffix(".idx")
    index.write_bytes(
        b"MMIDIDX\x00\x00"
        + struct.pack("<QBQQ", 1, CODES[dtype], len(lengths), len(firsts))
        + lengths.tobytes()
        + offsets.tobytes()
        + firsts.tobytes()
        + (b"" if modes is None else np.asarray(modes, "i1").tobytes())
    )
    return str(index)
