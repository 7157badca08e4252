# SPDX-License-Identifier: Apache-2.0
"""LitData's optimized datasets, written like LitData's writer does, without the library."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


def value_of(encoding: str, value: Any) -> bytes:
    if encoding == "int":
        return struct.pack("<q", value)
    if encoding == "float":
        return struct.pack("<d", value)
    if encoding == "bool":
        return bytes([bool(value)])
    if encoding == "tensor":  # of float32, number 0
        return struct.pack(f">{2 + value.ndim}I", 0, value.ndim, *value.shape) + value.astype("<f4").tobytes()
    if isinstance(value, np.ndarray):
        return value.tobytes()
    return value if isinstance(value, bytes) else str(value).encode()


def chunk(samples: Sequence[bytes]) -> bytes:
    ends = np.cumsum([4 * (len(samples) + 2), *map(len, samples)]).astype("<u4")
    return struct.pack("<I", len(samples)) + ends.tobytes() + b"".join(samples)


def sample(columns: Mapping[str, str], values: Mapping[str, Any]) -> bytes:
    stored = [value_of(columns[name], values[name]) for name in columns]
    return struct.pack(f"<{len(stored)}I", *map(len, stored)) + b"".join(stored)


def write(
    folder: Path, columns: Mapping[str, str], samples: Iterable[Mapping[str, Any]], chunks: int = 1, **config: Any
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stored, entries = [sample(columns, values) for values in samples], []
    for number in range(chunks):
        share = stored[number * len(stored) // chunks : (number + 1) * len(stored) // chunks]
        content, name = chunk(share), f"chunk-0-{number}.bin"
        (folder / name).write_bytes(content)
        entries.append({"chunk_bytes": len(content), "chunk_size": len(share), "dim": None, "filename": name})
    spec = [1, {"type": "builtins.dict", "context": json.dumps(list(columns)), "children_spec": [_LEAF] * len(columns)}]
    settings = {"data_format": list(columns.values()), "data_spec": json.dumps(spec), "compression": None}
    settings |= {"encryption": None, "item_loader": "PyTreeLoader"} | config
    (folder / "index.json").write_text(json.dumps({"chunks": entries, "config": settings, "updated_at": "0"}))
    return folder


def tokens(
    folder: Path, documents: Sequence[np.ndarray[Any, Any]], dtype_number: int = 17, chunks: int = 1, **config: Any
) -> Path:
    """Chunks for TokensLoader: documents without leading sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for number in range(chunks):
        share = documents[number * len(documents) // chunks : (number + 1) * len(documents) // chunks]
        content, name = chunk([document.tobytes() for document in share]), f"chunk-0-{number}.bin"
        (folder / name).write_bytes(content)
        dim = sum(map(len, share))
        entries.append({"chunk_bytes": len(content), "chunk_size": len(share), "dim": dim, "filename": name})
    settings = {"data_format": [f"no_header_tensor:{dtype_number}"], "data_spec": json.dumps([1, _LEAF])}
    settings |= {"compression": None, "encryption": None, "item_loader": "TokensLoader"} | config  # type: ignore[dict-item]
    (folder / "index.json").write_text(json.dumps({"chunks": entries, "config": settings, "updated_at": "0"}))
    return folder


def row_chunk(samples: int, arrow: bytes) -> bytes:
    """A chunk whose samples are the rows of an Arrow file or stream."""
    offsets = np.full(samples + 1, 4 * (samples + 2), "<u4")
    return struct.pack("<I", samples) + offsets.tobytes() + arrow + struct.pack("<I", len(arrow)) + b"LDARW01\0"


def rows(folder: Path, chunks: Sequence[tuple[int, bytes]], **config: Any) -> Path:
    """Chunks of Arrow rows, each given by its number of samples and its Arrow file."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for number, (samples, arrow) in enumerate(chunks):
        content, name = row_chunk(samples, arrow), f"chunk-0-{number}.bin"
        (folder / name).write_bytes(content)
        entries.append({"chunk_bytes": len(content), "chunk_size": samples, "dim": None, "filename": name})
    settings = {"data_format": ["json"], "data_spec": json.dumps([1, _LEAF]), "compression": None, "encryption": None}
    settings |= {"item_loader": "PyTreeLoader", "types": {"a": "json"}, "ipc_compression": None} | config  # type: ignore[dict-item]
    (folder / "index.json").write_text(json.dumps({"chunks": entries, "config": settings, "updated_at": "0"}))
    return folder


def of_folder(folder: Path, root: Path, chunks: int = 1) -> Path:
    """The JPEGs of class folders, in torchvision's order."""
    files = sorted(folder.glob("*/*.jpg"))
    classes = sorted({file.parent.name for file in files})
    samples = ({"image": file.read_bytes(), "label": classes.index(file.parent.name)} for file in files)
    return write(root, {"image": "jpeg", "label": "int"}, samples, chunks)
