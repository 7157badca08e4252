#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of lmdb_fuzz: small databases with small pages in every supported layout, and Datums."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "python"))

from made_lmdb import Pages, datum, file_of, raw_datum


def main() -> int:
    folder = pathlib.Path(__file__).parent / "lmdb"
    folder.mkdir(exist_ok=True)
    photo = b"\xff\xd8\xff\xe0 photo"
    numbered = {b"num-samples": b"2"}
    for i in (1, 2):
        numbered |= {b"image-%09d" % i: photo, b"label-%09d" % i: b"word"}
    inner, twice = Pages(256), Pages(256)
    named = inner.file(inner.tree({b"images": inner.tree({b"a": photo, b"b": photo * 20})}, databases=True))
    seeds = {
        "datums": file_of({b"0": datum(photo, 3), b"1": datum(photo, -1)}, size=256),
        "raw": file_of({b"0": raw_datum(3, 1, 2, b"bBgGrR", 3), b"1": raw_datum(1, 2, 2, b"abcd", 1)}, size=256),
        "numbered": file_of(numbered, size=512, nodes=3),
        "tall": file_of({b"%02d" % i: bytes([i]) * (i % 3 * 150) for i in range(12)}, size=256, nodes=2),
        "fields": file_of({b"image-0001": photo, b"label-0001": b"7", b"image-0002": photo}, size=256),
        "named": named,
        "duplicates": twice.file(twice.tree({b"a": b"1"}, flags=4)),
        "numbers": twice.file(twice.tree({b"\1\0\0\0": b"1", b"\2\0\0\0": b"2"}, flags=8), 3),
        "none": file_of({}, size=256),
        "datum": datum(photo, 3),
        "pattern": b"image-{:04d}.jpg\n",
    }
    for name, content in seeds.items():
        (folder / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
