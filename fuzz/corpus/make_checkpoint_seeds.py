# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of checkpoints_fuzz: an entry for an image of 32 x 24 MCUs in 40,000 bytes, and files of entries."""

from __future__ import annotations

import struct
from pathlib import Path

FOLDER = Path(__file__).parent / "checkpoints"


def varint(number: int) -> bytes:
    low = b""
    while number >= 128:
        low += bytes([number & 127 | 128])
        number >>= 7
    return low + bytes([number])


def main() -> None:
    head = (40_000, 32, 24, 32, 5, 1)
    deltas = [number for i in range(4) for number in (9_000 + i, 5, 2 * i, 7)]
    entry = bytes(4) + b"".join(map(varint, head + tuple(deltas))) + bytes(range(8))
    file = bytes(16) + struct.pack("<10Q", 3, 0, 0, 0, 3, 9, 2**60, 10, 30, len(entry)) + entry
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "entry").write_bytes(b"\x02" + entry)
    (FOLDER / "file").write_bytes(b"\x03" + file)
    (FOLDER / "file_without_sums").write_bytes(b"\x01" + file)


main()
