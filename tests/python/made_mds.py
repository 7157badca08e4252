# SPDX-License-Identifier: Apache-2.0
"""MDS datasets of version 2, written from the specification, without MosaicML's library."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_SIZES = {"int": 8} | {name: np.dtype(name).itemsize for name in ("uint8", "uint16", "uint32", "uint64")}
_SIZES |= {
    name: np.dtype(name).itemsize for name in ("int8", "int16", "int32", "int64", "float16", "float32", "float64")
}
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gz": lambda data: gzip.compress(data, mtime=0), "bz2": bz2.compress}
LINES = ("json", "csv", "tsv", "xsv")
_KINDS = {"uint8": 8, "int8": 9, "uint16": 16, "int16": 17, "float16": 18, "uint32": 32, "int32": 33, "float32": 34}
_KINDS |= {"uint64": 64, "int64": 65, "float64": 66}


def size_of(encoding: str) -> int | None:
    """Size of every value; None if sizes differ."""
    if encoding.count(":") == 2:
        _, dtype, shape = encoding.split(":")
        return int(np.prod([int(extent) for extent in shape.split(",")])) * np.dtype(dtype).itemsize
    return _SIZES.get(encoding)


def array(value: np.ndarray[Any, Any], encoding: str = "ndarray") -> bytes:
    parts = encoding.split(":")[1:]
    head = b"" if parts else bytes([_KINDS[value.dtype.name]])
    if len(parts) < 2:
        head += bytes([value.ndim << 2 | 1]) + np.array(value.shape, "<u2").tobytes()
    return head + value.tobytes()


def value_of(encoding: str, value: Any) -> bytes:
    if encoding.startswith("ndarray"):
        return array(value, encoding)
    if encoding in _SIZES:
        return np.array(value, "int64" if encoding == "int" else encoding).tobytes()
    if encoding == "json":
        return json.dumps(value).encode()
    return value if isinstance(value, bytes) else str(value).encode()


def sample(columns: Mapping[str, str], values: Mapping[str, Any]) -> bytes:
    stored = {name: value_of(columns[name], values[name]) for name in sorted(columns)}
    sizes = [struct.pack("<I", len(stored[name])) for name in stored if size_of(columns[name]) is None]
    return b"".join(sizes) + b"".join(stored.values())


def shard(samples: Sequence[bytes], config: bytes = b"{}") -> bytes:
    ends = np.cumsum([4 * (len(samples) + 2) + len(config), *map(len, samples)]).astype("<u4")
    return struct.pack("<I", len(samples)) + ends.tobytes() + config + b"".join(samples)


def line(form: str, columns: Mapping[str, str], values: Mapping[str, Any], separator: str, newline: str) -> bytes:
    """Encodes a sample for a shard of lines."""
    if form == "json":
        text = json.dumps({name: values[name] for name in columns}, sort_keys=True)
    else:
        text = separator.join(str(values[name]) for name in sorted(columns))
    return (text + newline).encode()


def line_files(lines: Sequence[bytes], header: bytes = b"") -> tuple[bytes, bytes]:
    """Writes a shard of lines, and its table of offsets."""
    ends = np.cumsum([len(header), *map(len, lines)]).astype("<u4")
    return header + b"".join(lines), struct.pack("<I", len(lines)) + ends.tobytes() + b"{}"


def _columns(form: str, columns: Mapping[str, str], separator: str, newline: str) -> dict[str, Any]:
    """Returns the index's description of a shard's columns."""
    if form == "json":
        return {"columns": dict(columns), "newline": newline}
    entry: dict[str, Any] = {
        "column_encodings": [columns[column] for column in sorted(columns)],
        "column_names": sorted(columns),
    }
    if form == "mds":
        return entry | {"column_sizes": [size_of(columns[column]) for column in sorted(columns)]}
    return entry | {"newline": newline} | ({"separator": separator} if form == "xsv" else {})


def _put(
    folder: Path, part: str, name: str, raw: bytes, compression: str | None, hashes: Sequence[str]
) -> dict[str, Any]:
    """Writes a file, and returns its entry in the index."""

    def file(name: str, content: bytes) -> dict[str, Any]:
        return {
            "basename": name,
            "bytes": len(content),
            "hashes": {algorithm: hashlib.new(algorithm, content).hexdigest() for algorithm in hashes},
        }

    if compression is None:
        (folder / name).write_bytes(raw)
        return {f"raw_{part}": file(name, raw), f"zip_{part}": None}
    end = compression.split(":")[0]
    zipped = _COMPRESS[end](raw)
    (folder / f"{name}.{end}").write_bytes(zipped)
    return {f"raw_{part}": file(name, raw), f"zip_{part}": file(f"{name}.{end}", zipped)}


def write(
    folder: Path,
    columns: Mapping[str, str],
    samples: Iterable[Mapping[str, Any]],
    shards: int = 1,
    compression: str | None = None,
    hashes: Sequence[str] = (),
    form: str = "mds",
    separator: str = "::",
    newline: str = "\n",
) -> Path:
    """Shards of about equally many samples, and the index.

    Args:
        form: "mds", or one of LINES: lines of the types "int", "float" and "str", with a table of their offsets.
        separator: between two cells of an "xsv".
    """
    folder.mkdir(parents=True, exist_ok=True)
    separator = {"csv": ",", "tsv": "\t"}.get(form, separator)
    if form == "mds":
        stored = [sample(columns, values) for values in samples]
    else:
        stored = [line(form, columns, values, separator, newline) for values in samples]
    header = b"" if form in ("mds", "json") else (separator.join(sorted(columns)) + newline).encode()
    entries = []
    for number in range(shards):
        share = stored[number * len(stored) // shards : (number + 1) * len(stored) // shards]
        name = f"shard.{number:05d}.{form}"
        entry = {"compression": compression, "format": form, "hashes": list(hashes), "samples": len(share)}
        entry |= {"size_limit": 1 << 26, "version": 2} | _columns(form, columns, separator, newline)
        if form == "mds":
            entry |= _put(folder, "data", name, shard(share), compression, hashes)
        else:
            lines, table = line_files(share, header)
            entry |= _put(folder, "data", name, lines, compression, hashes)
            entry |= _put(folder, "meta", f"{name}.meta", table, compression, hashes)
        entries.append(entry)
    (folder / "index.json").write_text(json.dumps({"shards": entries, "version": 2}, sort_keys=True))
    return folder


def of_folder(folder: Path, root: Path, shards: int = 1, **options: Any) -> Path:
    """The JPEGs of class folders, in torchvision's order."""
    files = sorted(folder.glob("*/*.jpg"))
    classes = sorted({file.parent.name for file in files})
    samples = ({"image": file.read_bytes(), "label": classes.index(file.parent.name)} for file in files)
    return write(root, {"image": "jpeg", "label": "int"}, samples, shards, **options)
