# SPDX-License-Identifier: Apache-2.0
"""Parquet files, written from the specification, without a library: pages of the first version, plain values."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from made_arrow import photos

_INT64, _BYTES = 2, 6
_KINDS: dict[type, int] = {tuple: 5, int: 6, str: 8, bytes: 8, list: 9, dict: 12}


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def compact(fields: Mapping[int, Any]) -> bytes:
    """A struct: an int is an i64, (int,) an i32, and other values are a str, bytes, dict, or a list of one of these."""
    out, last = b"", 0
    for number, value in fields.items():
        out += bytes([number - last << 4 | _KINDS[type(value)]]) + _value(value)
        last = number
    return out + b"\0"


def _value(value: Any) -> bytes:
    if isinstance(value, tuple | int):
        whole = value[0] if isinstance(value, tuple) else value
        return varint((whole << 1) ^ (whole >> 63))
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        return varint(len(data)) + data
    if isinstance(value, dict):
        return compact(value)
    kind, size = _KINDS[type(value[0])], len(value)
    head = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + varint(size)
    return head + b"".join(map(_value, value))


def _page(values: Sequence[Any], pack: Callable[[bytes], bytes] | None) -> bytes:
    levels = b"".join(varint(2) + bytes([value is not None]) for value in values)
    plain = struct.pack("<I", len(levels)) + levels
    for value in values:
        if isinstance(value, int):
            plain += struct.pack("<q", value)
        elif value is not None:
            data = value.encode() if isinstance(value, str) else value
            plain += struct.pack("<I", len(data)) + data
    packed = pack(plain) if pack else plain
    crc = zlib.crc32(packed)
    header = {1: (0,), 2: (len(plain),), 3: (len(packed),), 4: (crc - (crc >> 31 << 32),)}
    return compact({**header, 5: {1: (len(values),), 2: (0,), 3: (3,), 4: (3,)}}) + packed


def file_of(
    rows: Sequence[Mapping[str, Any]],
    features: Mapping[str, Any] | None = None,
    *,
    per_group: int = 10,
    per_page: int = 4,
    codec: int = 0,
    pack: Callable[[bytes], bytes] | None = None,
    indexed: bool = False,
) -> bytes:
    """Columns of bytes, text and integers, any of which may be None. indexed: with an OffsetIndex for each chunk."""
    out, groups = b"PAR1", []
    indexes: list[tuple[dict[int, Any], bytes]] = []
    kinds = {name: next((type(row[name]) for row in rows if row[name] is not None), bytes) for name in rows[0]}
    for begin in range(0, len(rows), per_group):
        group, chunks = rows[begin : begin + per_group], []
        for name, kind in kinds.items():
            at, pages = len(out), []
            for page in range(0, len(group), per_page):
                stored_page = _page([row[name] for row in group[page : page + per_page]], pack)
                pages.append({1: len(out), 2: (len(stored_page),), 3: page})
                out += stored_page
            stored = _INT64 if kind is int else _BYTES
            described = {1: (stored,), 2: [(0,)], 3: [name], 4: (codec,), 5: len(group), 6: 0, 7: len(out) - at, 9: at}
            chunks.append({2: 0, 3: described})
            indexes.append((chunks[-1], compact({1: pages})))
        groups.append({1: chunks, 2: 0, 3: len(group)})
    for chunk, index in indexes if indexed else []:
        chunk |= {4: len(out), 5: (len(index),)}
        out += index
    schema: list[dict[int, Any]] = [{4: "schema", 5: (len(kinds),)}]
    for name, kind in kinds.items():
        leaf = {1: (_INT64 if kind is int else _BYTES,), 3: (1,), 4: name}
        schema.append({**leaf, 6: (0,)} if kind is str else leaf)
    footer = {1: (2,), 2: schema, 3: len(rows), 4: groups}
    if features:
        footer[5] = [{1: "huggingface", 2: json.dumps({"info": {"features": features}})}]
    text = compact(footer)
    return out + text + struct.pack("<I", len(text)) + b"PAR1"


def of_folder(folder: Path, root: Path, shards: int = 1, **options: Any) -> Path:
    """The JPEGs of class folders, in torchvision's order, in the form in which `datasets` stores a split."""
    rows, features = photos(folder)
    rows = [{"image": row["image"]["bytes"], "label": row["label"]} for row in rows]
    (root / "data").mkdir(parents=True, exist_ok=True)
    for shard in range(shards):
        share = rows[shard * len(rows) // shards : (shard + 1) * len(rows) // shards]
        name = f"train-{shard:05d}-of-{shards:05d}.parquet"
        (root / "data" / name).write_bytes(file_of(share, features, **options))
    return root
