# SPDX-License-Identifier: Apache-2.0
"""Writes shards of lines with MosaicML's library, and prints what it reads back. Run by its own interpreter."""

import functools
import json
import sys

from streaming_here import CSVWriter, JSONWriter, StreamingDataset, TSVWriter, XSVWriter

folder = sys.argv[1]
WRITERS = {
    "json": JSONWriter,
    "csv": CSVWriter,
    "tsv": functools.partial(TSVWriter, newline="\r\n"),
    "xsv": functools.partial(XSVWriter, separator="<|>", newline="<end>\n"),
}
COLUMNS = {"text": "str", "a number": "int", "real": "float", "ünï": "str"}


def sample(i):
    reals = [0.1 * i, 1e300 * 10**i, -1e-320, float("inf"), 2.0, -0.0]
    return {
        "text": f"tëxt {i} \\ \"{i}\" 'x' 😀 \x7f" * (i % 4),
        "a number": (-1) ** i * (2**63 - 1 - i),
        "real": reals[i % len(reals)],
        "ünï": "" if i % 3 else "<|" * i,
    }


rows = {}
for form, writer in WRITERS.items():
    for compression in (None, "br", "bz2", "gz", "snappy", "zstd:7"):
        name = f"{form}-{str(compression).replace(':', '-')}"
        out = f"{folder}/{name}"
        with writer(
            out=out, columns=COLUMNS, compression=compression, hashes=["sha1", "xxh3_64"], size_limit=1500
        ) as file:
            for i in range(40):
                file.write(sample(i))
        rows[name] = list(StreamingDataset(local=out, shuffle=False, batch_size=1))
print(json.dumps(rows))
