#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of table_fuzz: separated values with every kind of quoting, and JSON lines."""

from __future__ import annotations

import pathlib
import sys


def main() -> int:
    folder = pathlib.Path(__file__).parent / "table"
    folder.mkdir(exist_ok=True)
    seeds = {
        "plain.csv": b"path,label,x\na.jpg,1,0.5\nb.jpg,2,nan\n",
        "quoted.csv": b'\xef\xbb\xbffile_name,class\r\n"a ""b"".png",dog\r\n"c\nd.png","cat"\r\n\r\n,\r\n',
        "tabs.tsv": b"path\tn\na.jpg\t7\n",
        "lines.jsonl": b'{"file_name": "a.jpg", "n": -1.5e3, "t": "\\u00e9\\ud83d\\ude00\\n", "l": [1, {"k": null}]}\n'
        b'{"b": true}\n',
        "wrong.csv": b'a,b\n1\n"2',
        "deep.jsonl": b'{"a": ' + b"[" * 70 + b"]" * 70 + b"}",
    }
    for name, content in seeds.items():
        (folder / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
