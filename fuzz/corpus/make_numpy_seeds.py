#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of numpy_fuzz: arrays of every order; stored and deflated archives, with and without ZIP64."""

from __future__ import annotations

import io
import pathlib
import struct
import sys
import zipfile


def npy(descr: str, shape: str, data: bytes, order: str = "False", version: int = 1) -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def archive(members: dict[str, bytes], method: int, *, big: bool = False) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as file:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with file.open(info, "w", force_zip64=big) as member:
                member.write(data)
    return content.getvalue()


def main() -> int:
    folder = pathlib.Path(__file__).parent / "numpy"
    folder.mkdir(exist_ok=True)
    x, y = npy("<f4", "(2, 3)", bytes(24)), npy("<i8", "(2,)", bytes(16))
    seeds = {
        "plain": x,
        "fortran": npy("|u1", "(2, 3, 2)", bytes(range(12)), "True"),
        "swapped": npy(">u2", "(2, 2)", bytes(range(8)), "True", 2),
        "third": npy("<f8", "(1, 1)", bytes(8), version=3),
        "none": npy("<f8", "(0, 4)", b""),
        "stored": archive({"x.npy": x, "y.npy": y}, zipfile.ZIP_STORED, big=True),
        "deflated": archive({"x.npy": x, "y.npy": y}, zipfile.ZIP_DEFLATED),
        "empty": archive({}, zipfile.ZIP_STORED),
    }
    for name, content in seeds.items():
        (folder / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
