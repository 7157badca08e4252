# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of rows_fuzz: bytes from which it builds valid columns, with one kind of column per seed."""

from __future__ import annotations

import struct
from pathlib import Path

FOLDER = Path(__file__).parent / "rows"
NO_NAMES = b"\1"  # of rows

ARROW = b"\0"  # the kinds of text cells
VIEWS = b"\1"
UTF32 = b"\2"
INTEGERS = b"\3"


def arrow(*texts: bytes) -> bytes:
    ends = [sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
    joined = b"".join(texts)
    offsets = struct.pack(f"<{len(ends)}i", *ends)
    one_narrow_chunk = b"\0\0"
    return bytes([len(texts)]) + ARROW + one_narrow_chunk + offsets + bytes([len(joined)]) + joined


def views(short: bytes, long: bytes) -> bytes:
    inline = struct.pack("<i12s", len(short), short)
    outside = struct.pack("<i4sii", len(long), long[:4], 0, 0)
    return b"\2" + VIEWS + inline + outside + b"\1" + bytes([len(long)]) + long


def utf32(*texts: str) -> bytes:
    return bytes([len(texts)]) + UTF32 + b"\3" + b"".join(text.ljust(3, "\0").encode("utf-32-le") for text in texts)


def integers(*values: int) -> bytes:
    return bytes([len(values)]) + INTEGERS + struct.pack(f"<{len(values)}q", *values)


def dataset(*columns: bytes, names: bytes = NO_NAMES) -> bytes:
    return bytes([len(columns) - 1]) + b"".join(columns) + names


def files(*cells: bytes) -> bytes:
    return b"\0" + bytes([len(cells)]) + b"".join(cells) + b"\1"  # without lists


def text(cells: bytes) -> bytes:
    return b"\1" + cells


def numbers(*values: int) -> bytes:
    return b"\2" + bytes([len(values)]) + struct.pack(f"<{len(values)}q", *values) + b"\0\1"  # "value", not ragged


def lists(cells: bytes, *lengths: int) -> bytes:
    ends = b"".join(bytes([length, 1]) for length in (*lengths, 0))
    return b"\0\1" + cells + b"\0" + bytes([len(lengths) + 1]) + ends + b"\0"


def tags(codes: list[int], lengths: list[int], classes: int) -> bytes:
    ends = b"".join(bytes([length, 1]) for length in (*lengths, 0))
    stored = bytes([len(codes)]) + struct.pack(f"<{len(codes)}i", *codes)
    return b"\3" + stored + b"\1\0" + bytes([len(lengths) + 1]) + ends + bytes([classes])


SEEDS = {
    "arrow": dataset(files(arrow(b"a.jpg", b"", b"b.jpg")), text(arrow(b"x", b"yz", b""))),
    "views": dataset(files(views(b"a.jpg", b"a/longer/path.jpg")), numbers(3, -1)),
    "utf32": dataset(text(utf32("a", "b\u00e9c")), names=b"\0" + utf32("r", "s")),
    "template": dataset(files(integers(7, 8), arrow(b"x", b"y"))),
    "lists": dataset(lists(arrow(b"a", b"b", b"c"), 2, 1), numbers(0, 1)),
    "tags": dataset(tags([0, 2, 1], [1, 2], 3)),
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, seed in SEEDS.items():
        (FOLDER / name).write_bytes(seed)
