#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of arrow_fuzz and parquet_fuzz: small files with columns of several kinds, and truncated files."""

from __future__ import annotations

import gzip
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "python"))

import made_arrow
import made_parquet


def main() -> int:
    here = pathlib.Path(__file__).parent
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": ["a", "b"]}}
    photos = [{"image": {"bytes": b"\xff\xd8\xff" + bytes([i]), "path": None}, "label": i % 2} for i in range(7)]
    nested = [{"ids": [i, 2], "boxes": [[1, 2, 3, 4]] * 2, "text": "t" * i, "raw": b"r"} for i in range(4)]
    flat = [{"image": b"\xff\xd8\xff", "label": i, "text": None if i == 2 else "t" * i} for i in range(9)]
    seeds = {
        "arrow": {
            "photos": made_arrow.stream(photos, 3, features),
            "nested": made_arrow.stream(nested),
            "cut": made_arrow.stream(nested)[:-20],
            "empty": b"",
        },
        "parquet": {
            "plain": made_parquet.file_of(flat, features, per_group=5, per_page=2),
            "gzip": made_parquet.file_of(flat, codec=2, pack=gzip.compress),
            "cut": made_parquet.file_of(flat)[:-3],
            "empty": b"",
        },
    }
    for fuzzer, files in seeds.items():
        (here / fuzzer).mkdir(exist_ok=True)
        for name, content in files.items():
            (here / fuzzer / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
