#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of tfrecord_fuzz: small files with every kind of value and of damage."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "python"))

from made_tfrecords import example, message, record, sequence_example


def main() -> int:
    folder = pathlib.Path(__file__).parent / "tfrecord"
    folder.mkdir(exist_ok=True)
    every = {"b": [b"x", b""], "f": [1.5, -2.0], "i": [1, -1, 2**40], "image/encoded": b"\xff\xd8\xff\xe0", "label": 7}
    packed, single = record(example(every)), record(example(every, packed=False))
    seeds = {
        "packed": packed,
        "single": single,
        "sequence": record(sequence_example({"id": 3}, {"x": [[1.0, 2.0], [3.0, 4.0]], "s": [b"a", b"b"], "none": []})),
        "several": packed + record(b"") + single,
        "twice": record(example({"a": 1}) + example({"a": b"x", "b": 2})),
        "groups": record(b"\x13\x08\x01\x14" + example({"a": 1}) + b"\x78\x05"),
        "no_value": record(message(1, message(1, message(1, b"a")) + message(1, b""))),
        "text": record(b"no message at all"),
        "cut": packed[:-5],
        "index": b"0 16\n16 4080\n",
        "empty": b"",
    }
    for name, content in seeds.items():
        (folder / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
