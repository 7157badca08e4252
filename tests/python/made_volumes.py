# SPDX-License-Identifier: Apache-2.0
"""Writes NIfTI files, Zarr arrays and their codecs, without the libraries that usually write them."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Codec = Callable[[bytes], bytes]

NIFTI_TYPES = {"u1": 2, "i2": 4, "i4": 8, "f4": 16, "f8": 64, "i1": 256, "u2": 512, "u4": 768, "i8": 1024, "u8": 1280}


def touched(path: Any) -> None:
    """Sets a later modification time: file systems may count in steps that are longer than a test."""
    later = Path(path).stat().st_mtime_ns + 2_000_000_000
    os.utime(path, ns=(later, later))


def nifti(
    array: np.ndarray[Any, Any],
    *,
    version: int = 1,
    order: str = "<",
    slope: float = 0.0,
    inter: float = 0.0,
    sform: np.ndarray[Any, Any] | None = None,
    quaternion: Sequence[float] | None = None,
    pixdim: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
    **changes: tuple[int, str, Any],
) -> bytes:
    """Returns a .nii file. `changes` overwrite the header: (offset, struct format, value)."""
    header = bytearray(352 if version == 1 else 544)

    def put(offset: int, form: str, *values: Any) -> None:
        struct.pack_into(order + form, header, offset, *values)

    shape = [array.ndim, *array.shape] + [1] * (7 - array.ndim)
    dims = [*pixdim] + [1.0] * (8 - len(pixdim))
    rows = np.zeros((3, 4)) if sform is None else np.asarray(sform)[:3]
    quat = quaternion or (0.0,) * 6
    code = NIFTI_TYPES[array.dtype.str[1:]]
    if version == 1:
        put(0, "i", 348)
        put(40, "8h", *shape)
        put(70, "hh", code, array.dtype.itemsize * 8)
        put(76, "8f", *dims)
        put(108, "3f", 352, slope, inter)
        put(252, "hh", quaternion is not None, sform is not None)
        put(256, "6f", *quat)
        put(280, "12f", *rows.ravel())
        header[344:348] = b"n+1\0"
    else:
        put(0, "i", 540)
        header[4:12] = b"n+2\0\r\n\x1a\n"
        put(12, "hh", code, array.dtype.itemsize * 8)
        put(16, "8q", *shape)
        put(104, "8d", *dims)
        put(168, "q2d", 544, slope, inter)
        put(344, "ii", quaternion is not None, sform is not None)
        put(352, "6d", *quat)
        put(400, "12d", *rows.ravel())
    for offset, form, value in changes.values():
        put(offset, form, value)
    return bytes(header) + array.astype(array.dtype.newbyteorder(order)).tobytes(order="F")


def crc32c(data: bytes) -> int:
    """CRC-32C (RFC 3720), bit by bit."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def with_crc(data: bytes) -> bytes:
    return data + struct.pack("<I", crc32c(data))


def zstd(data: bytes) -> bytes:
    import pyarrow as pa

    return pa.Codec("zstd").compress(data, asbytes=True)


def lz4_block(data: bytes) -> bytes:
    import pyarrow as pa

    return pa.Codec("lz4_raw").compress(data, asbytes=True)


def lz4(data: bytes) -> bytes:
    """numcodecs' lz4: the size, then a block."""
    return struct.pack("<I", len(data)) + lz4_block(data)


CODECS: dict[str, tuple[int, Codec]] = {"lz4": (1, lz4_block), "zlib": (3, zlib.compress), "zstd": (4, zstd)}


def blosc(
    data: bytes,
    name: str = "lz4",
    element: int = 1,
    shuffle: str = "none",
    block: int | None = None,
    split: bool = True,
) -> bytes:
    """A chunk of Blosc 1. shuffle: "none", "bytes" or "bits"."""
    code, compress = CODECS[name]
    size = min(block or len(data), len(data))
    streams_of_block = element if split and element <= 16 and size // element >= 128 else 1
    body, offsets = b"", []
    count = -(-len(data) // size)
    for start in range(0, len(data), size):
        part = data[start : start + size]
        if shuffle == "bytes":
            part = _shuffled(part, element)
        elif shuffle == "bits" and len(part) // element % 8 == 0:
            part = _bits_shuffled(part, element)
        offsets.append(16 + 4 * count + len(body))
        streams = streams_of_block if len(part) == size else 1
        for i in range(streams):
            stream = part[len(part) // streams * i : len(part) // streams * (i + 1)]
            packed = compress(stream)
            if len(packed) >= len(stream):
                packed = stream
            body += struct.pack("<I", len(packed)) + packed
    flags = {"none": 0, "bytes": 1, "bits": 4}[shuffle] | code << 5 | (0 if split else 16)
    head = struct.pack("<BBBBIII", 2, 1, flags, element, len(data), size, 16 + 4 * count + len(body))
    return head + struct.pack(f"<{count}I", *offsets) + body


def _shuffled(data: bytes, element: int) -> bytes:
    whole = len(data) // element * element
    return np.frombuffer(data[:whole], "u1").reshape(-1, element).T.tobytes() + data[whole:]


def _bits_shuffled(data: bytes, element: int) -> bytes:
    whole = len(data) // element * element
    planes = np.frombuffer(data[:whole], "u1").reshape(-1, element)
    bits = np.unpackbits(planes, axis=1, bitorder="little")  # element i, then bit 8 * b + k
    return np.packbits(bits.T, axis=1, bitorder="little").tobytes() + data[whole:]


def chunks_of(array: np.ndarray[Any, Any], chunk: Sequence[int], fill: Any = 0) -> dict[tuple[int, ...], Any]:
    """All chunks by index; those at the edges are filled up."""
    counts = [-(-extent // size) for extent, size in zip(array.shape, chunk, strict=True)]
    padded = np.full([n * size for n, size in zip(counts, chunk, strict=True)], fill, array.dtype)
    padded[tuple(slice(0, extent) for extent in array.shape)] = array
    return {
        at: padded[tuple(slice(i * size, (i + 1) * size) for i, size in zip(at, chunk, strict=True))]
        for at in itertools.product(*map(range, counts))
    }


def zarr3(
    folder: Path,
    array: np.ndarray[Any, Any],
    chunk: Sequence[int],
    codecs: Sequence[Any],
    encode: Codec,
    *,
    fill: Any = 0,
    shown_fill: Any = None,
    separator: str = "/",
    encoding: str = "default",
    transpose: Sequence[int] | None = None,
    missing: Sequence[tuple[int, ...]] = (),
    **changes: Any,
) -> Path:
    """Writes a Zarr array of version 3; `encode` maps the bytes of a chunk to its stored form."""
    folder.mkdir(parents=True)
    metadata = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": array.shape,
        "data_type": array.dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": encoding, "configuration": {"separator": separator}},
        "fill_value": fill if shown_fill is None else shown_fill,
        "codecs": codecs,
        "dimension_names": [None] * array.ndim,
        "attributes": {},
    } | changes
    (folder / "zarr.json").write_text(json.dumps({name: value for name, value in metadata.items() if value != "omit"}))
    for at, part in chunks_of(array, chunk, fill).items():
        if at in missing:
            continue
        name = separator.join(map(str, at))
        path = folder / (name if encoding == "v2" else f"c{separator}{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode((part if transpose is None else part.transpose(transpose)).tobytes()))
    return folder


def shard_encoder(
    shape: Sequence[int],
    inner: Sequence[int],
    dtype: Any,
    encode: Codec,
    *,
    first: bool = False,
    has_sum: bool = True,
    missing: Sequence[tuple[int, ...]] = (),
    gap: int = 0,
    reverse: bool = False,
) -> Codec:
    """Returns the encoder of shards that consist of chunks."""

    def encoded(data: bytes) -> bytes:
        chunks = chunks_of(np.frombuffer(data, dtype).reshape(shape), inner)
        size = 16 * len(chunks) + (4 if has_sum else 0)
        at, body = size if first else 0, b""
        index = {}
        for key in sorted(chunks, reverse=reverse):
            if key in missing:
                index[key] = (2**64 - 1, 2**64 - 1)
                continue
            stored = encode(chunks[key].tobytes())
            body += b"\xee" * gap
            index[key] = (at + len(body), len(stored))
            body += stored
        table = b"".join(struct.pack("<QQ", *index[key]) for key in chunks)
        table = with_crc(table) if has_sum else table
        return table + body if first else body + table

    return encoded


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def sharding(inner: Sequence[int], codecs: Sequence[Any], *, location: str | None = None, has_sum: bool = True) -> Any:
    configuration = {
        "chunk_shape": inner,
        "codecs": codecs,
        "index_codecs": [LITTLE, *([{"name": "crc32c"}] if has_sum else [])],
    }
    if location is not None:
        configuration["index_location"] = location
    return {"name": "sharding_indexed", "configuration": configuration}


def zarr2(
    folder: Path,
    array: np.ndarray[Any, Any],
    chunk: Sequence[int],
    compressor: Any,
    encode: Codec,
    *,
    fill: Any = 0,
    order: str = "C",
    separator: str | None = None,
    filters: Any = None,
    missing: Sequence[tuple[int, ...]] = (),
    **changes: Any,
) -> Path:
    folder.mkdir(parents=True)
    metadata = {
        "zarr_format": 2,
        "shape": array.shape,
        "chunks": chunk,
        "dtype": array.dtype.str,
        "compressor": compressor,
        "fill_value": fill,
        "order": order,
        "filters": filters,
    } | changes
    if separator is not None:
        metadata["dimension_separator"] = separator
    (folder / ".zarray").write_text(json.dumps(metadata))
    for at, part in chunks_of(array, chunk, fill or 0).items():
        if at in missing:
            continue
        path = folder / (separator or ".").join(map(str, at))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(part.tobytes(order=order)))  # type: ignore[arg-type]
    return folder


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)
