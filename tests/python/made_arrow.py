# SPDX-License-Identifier: Apache-2.0
"""Arrow streams and folders as `datasets` saves them, written from the specifications, without a library."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# A table is a dict by field number. Its values: an int, str, dict (a table), list of dicts, or (numbers, per element).
Table = Mapping[int, Any]
_INT64 = (2, {0: 64, 1: 1})
_BYTES, _TEXT, _STRUCT, _LIST = (4, {}), (5, {}), (13, {}), (12, {})


class _Flat:
    """A FlatBuffer, front to back; every field of a table takes 8 bytes."""

    def __init__(self, root: Table) -> None:
        self.bytes = bytearray(8)
        self._patch(0, self._table(root))
        self._align()

    def _align(self) -> None:
        self.bytes += bytes(-len(self.bytes) % 8)

    def _patch(self, at: int, value: int) -> None:
        self.bytes[at : at + 4] = struct.pack("<I", value)

    def _table(self, table: Table) -> int:
        self._align()
        vtable, fields = len(self.bytes), list(table)
        places = [8 + 8 * fields.index(i) if i in table else 0 for i in range(max(fields, default=-1) + 1)]
        self.bytes += struct.pack(f"<HH{len(places)}H", 4 + 2 * len(places), 8 + 8 * len(fields), *places)
        self._align()
        begin = len(self.bytes)
        self.bytes += struct.pack("<iI", begin - vtable, 0)
        for value in table.values():
            self.bytes += struct.pack("<q", value if isinstance(value, int) else 0)
        for i, value in enumerate(table.values()):
            if not isinstance(value, int):
                self._child(begin + 8 + 8 * i, value)
        return begin

    def _child(self, slot: int, value: Any) -> None:
        if isinstance(value, dict):
            self._patch(slot, self._table(value) - slot)
            return
        self._align()
        if isinstance(value, tuple):
            self.bytes += bytes(4)  # its elements are aligned to 8 bytes
        self._patch(slot, len(self.bytes) - slot)
        if isinstance(value, str):
            data = value.encode()
            self.bytes += struct.pack("<I", len(data)) + data + b"\0"
        elif isinstance(value, tuple):
            numbers, each = value
            self.bytes += struct.pack(f"<I{len(numbers)}q", len(numbers) // each, *numbers)
        else:
            self.bytes += struct.pack("<I", len(value))
            first = len(self.bytes)
            self.bytes += bytes(4 * len(value))
            for i, one in enumerate(value):
                self._patch(first + 4 * i, self._table(one) - first - 4 * i)


class Column:
    """A column: its type, and its arrays for each batch."""

    def __init__(self, name: str, kind: tuple[int, Table], children: Sequence[Column] = ()) -> None:
        self.name, self.kind, self.children = name, kind, children

    def field(self) -> Table:
        return {0: self.name, 1: 1, 2: self.kind[0], 3: dict(self.kind[1]), 5: [one.field() for one in self.children]}

    def arrays(self, values: Sequence[Any]) -> tuple[list[int], list[bytes]]:
        """Returns nodes and buffers."""
        lacking = [value is None for value in values]
        mask = bytearray((len(values) + 7) // 8)
        for i, lacks in enumerate(lacking):
            mask[i // 8] |= (not lacks) << i % 8
        nodes, buffers = [len(values), sum(lacking)], [bytes(mask) if any(lacking) else b""]
        if self.kind is _INT64:
            buffers.append(struct.pack(f"<{len(values)}q", *[value or 0 for value in values]))
            return nodes, buffers
        if self.kind is _STRUCT:
            for child in self.children:
                inner = child.arrays([None if value is None else value[child.name] for value in values])
                nodes, buffers = nodes + inner[0], buffers + inner[1]
            return nodes, buffers
        ends = [0]
        for value in values:
            ends.append(ends[-1] + len(value or ()))
        buffers.append(struct.pack(f"<{len(ends)}i", *ends))
        if self.kind is _LIST:
            inner = self.children[0].arrays([one for value in values for one in value or ()])
            return nodes + inner[0], buffers + inner[1]
        return nodes, [
            *buffers,
            b"".join(value.encode() if isinstance(value, str) else value or b"" for value in values),
        ]


def column(name: str, value: Any) -> Column:
    """Returns the type of a column's first value."""
    if isinstance(value, dict):
        return Column(name, _STRUCT, [column(key, "" if inner is None else inner) for key, inner in value.items()])
    if isinstance(value, list):
        return Column(name, _LIST, [column("item", value[0])])
    return Column(name, _TEXT if isinstance(value, str) else _BYTES if isinstance(value, bytes) else _INT64)


def _message(kind: int, header: Table, body: bytes = b"") -> bytes:
    metadata = bytes(_Flat({0: 4, 1: kind, 2: header, 3: len(body)}).bytes)
    return struct.pack("<Ii", 0xFFFFFFFF, len(metadata)) + metadata + body


def stream(rows: Sequence[Mapping[str, Any]], per_batch: int = 5, features: Mapping[str, Any] | None = None) -> bytes:
    known = {name: next((row[name] for row in rows if row[name] is not None), None) for name in rows[0]}
    columns = [column(name, value) for name, value in known.items()]
    schema: dict[int, Any] = {0: 0, 1: [one.field() for one in columns]}
    if features:
        schema[2] = [{0: "huggingface", 1: json.dumps({"info": {"features": features}})}]
    out = _message(1, schema)
    for begin in range(0, len(rows), per_batch):
        batch = rows[begin : begin + per_batch]
        nodes: list[int] = []
        places: list[int] = []
        body = b""
        for one in columns:
            made, buffers = one.arrays([row[one.name] for row in batch])
            nodes += made
            for buffer in buffers:
                places += [len(body), len(buffer)]
                body += buffer + bytes(-len(buffer) % 8)
        out += _message(3, {0: len(batch), 1: (nodes, 2), 2: (places, 2)}, body)
    return out + b"\xff\xff\xff\xff\0\0\0\0"


def photos(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Returns the JPEGs of class folders, in torchvision's order, as rows and features of `datasets`."""
    files = sorted(folder.glob("*/*.jpg"))
    classes = sorted({file.parent.name for file in files})
    rows = [
        {"image": {"bytes": file.read_bytes(), "path": file.name}, "label": classes.index(file.parent.name)}
        for file in files
    ]
    return rows, {"image": {"_type": "Image"}, "label": {"names": classes, "_type": "ClassLabel"}}


def save(root: Path, rows: Sequence[Mapping[str, Any]], features: Mapping[str, Any], shards: int = 1) -> Path:
    """Writes a folder like save_to_disk()."""
    root.mkdir(parents=True, exist_ok=True)
    names = [f"data-{shard:05d}-of-{shards:05d}.arrow" for shard in range(shards)]
    for shard, name in enumerate(names):
        share = rows[shard * len(rows) // shards : (shard + 1) * len(rows) // shards]
        (root / name).write_bytes(stream(share, features=features))
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0", "_split": None}
    state |= {"_format_columns": None, "_format_kwargs": {}, "_format_type": None, "_output_all_columns": False}
    (root / "state.json").write_text(json.dumps(state))
    (root / "dataset_info.json").write_text(json.dumps({"features": features}))
    return root


def of_folder(folder: Path, root: Path, shards: int = 1) -> Path:
    rows, features = photos(folder)
    return save(root, rows, features, shards)
