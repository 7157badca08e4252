#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of mds_fuzz: indexes of both formats, a shard with every kind of value, lines with a table of their
offsets, and compressed blocks.
"""

from __future__ import annotations

import bz2
import gzip
import pathlib
import struct
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "python"))

import made_litdata
import made_mds
import numpy as np


def one_sample() -> bytes:
    """Returns a sample of mds_fuzz's columns, in their order."""
    pixels = struct.pack("<III", 1, 2, 3) + b"RGB" + bytes(6)
    image = b"\xff\xd8\xff\xe0"
    variable = [b"raw", b"text", b"{}", image, pixels, struct.pack("<II", 1, 4) + image]
    variable += [struct.pack("<III", 0, 1, 4) + image, b"-12", b"1.5", b"0.10"]
    variable += [
        made_mds.array(np.arange(6).reshape(2, 3)),
        made_mds.array(np.arange(3, dtype="uint16"), "ndarray:uint16"),
    ]
    last = [struct.pack(">IIII", 0, 2, 1, 1) + bytes(4), struct.pack("<III", 9, 1, 1) + bytes(4), bytes(8), b"\x01"]
    sizes = [len(value) for value in [*variable, *last]]
    return struct.pack(f"<{len(sizes)}I", *sizes) + b"".join([*variable, bytes(16), bytes(8), *last])


def main() -> int:
    folder = pathlib.Path(__file__).parent / "mds"
    folder.mkdir(exist_ok=True)
    text = b"a text that is compressed " * 20
    deflate = zlib.compressobj(wbits=-15)
    with tempfile.TemporaryDirectory() as made:
        root = pathlib.Path(made)
        mds = made_mds.write(root / "m", {"a": "int", "b": "ndarray:int8"}, [], 2, "gz", ["sha1"]) / "index.json"
        lit = made_litdata.write(root / "l", {"a": "int", "b": "tensor"}, [], 2) / "index.json"
        lines = {"f": "float", "n": "int"}
        xsv = made_mds.write(root / "x", lines, [], 1, "gz", ["sha1"], form="xsv") / "index.json"
        js = made_mds.write(root / "j", lines, [], form="json") / "index.json"
        table = struct.pack("<IIII", 2, 8, 1000, 1 << 20) + b"{}"
        seeds = {
            "lines_index": b"m" + xsv.read_bytes(),
            "json_index": b"m" + js.read_bytes(),
            "table": b"t" + table,
            "json_line": b'j{"f": -Infinity, "n": true, "s": "a\\u00e9\\\\", "u": [{"x": 1}]}\n',
            "cells": b"x1.5::-7::text::more\r\n",
            "mds_index": b"m" + mds.read_bytes(),
            "litdata_index": b"l" + lit.read_bytes(),
            "spec": b'l[1, {"type": "builtins.list", "context": "null", "children_spec": []}]',
            "shard": b"s" + made_mds.shard([one_sample(), one_sample()]),
            "gzip": b"\x01" + gzip.compress(text, mtime=0),
            "zlib": b"\x02" + zlib.compress(text),
            "deflate": b"\x03" + deflate.compress(text) + deflate.flush(),
            "bzip2": b"\x05" + bz2.compress(text),
            "zstd": b"\x00\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello",
            "snappy": b"\x06\x05\x10hello",
            "lz4": b"\x07\x50hello",
        }
    for name, content in seeds.items():
        (folder / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
