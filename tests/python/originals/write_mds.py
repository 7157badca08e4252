# SPDX-License-Identifier: Apache-2.0
"""Writes MDS datasets with MosaicML's library, and prints what it reads back. Run by its own interpreter."""

import io
import json
import sys
from decimal import Decimal

import numpy as np
from PIL import Image
from streaming_here import MDSWriter, StreamingDataset, get_hashes, shown

folder, draw = sys.argv[1], np.random.default_rng(7)
SCALARS = ["uint8", "uint16", "uint32", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
COLUMNS = {name: name for name in SCALARS} | {
    "u64": "uint64",
    "whole": "int",
    "text": "str",
    "raw": "bytes",
    "tree": "json",
    "si": "str_int",
    "sf": "str_float",
    "sd": "str_decimal",
    "any": "ndarray",
    "typed": "ndarray:int16",
    "fixed": "ndarray:float32:2,3",
    "pil": "pil",
    "jpeg": "jpeg",
    "png": "png",
    "jpegs": "list[jpeg]",
    "array": "jpeg_array",
}


def image(size):
    return Image.fromarray(draw.integers(0, 256, (size + 1, size + 2, 3), dtype=np.uint8))


def jpeg():
    out = io.BytesIO()
    image(9).save(out, "JPEG")
    return out.getvalue()


def sample(i, number):
    one = {name: np.dtype(name).type(draw.integers(0, 100) - (0 if name[0] == "u" else 50)) for name in SCALARS}
    kinds = ["uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32", "uint64", "int64", "float64"]
    shape = tuple(int(x) for x in draw.integers(1, 300 if i % 5 == 0 else 5, 1 + i % 3)) if i % 5 else (1, 300)
    return one | {
        "u64": np.uint64(2**63 + i),
        "whole": int(draw.integers(-(2**63), 2**63)),
        "text": f"tëxt {i} " * (i % 9),
        "raw": draw.bytes(i * 17 % 400),
        "tree": {"k": [i, None, "x"]},
        "si": 10**15 + i,
        "sf": 1 / (i + 1),
        "sd": Decimal(i) / 7,
        "any": draw.integers(0, 100, shape).astype(kinds[number]),
        "typed": draw.integers(-9, 9, (i % 4 + 1, 2)).astype("int16"),
        "fixed": draw.normal(size=(2, 3)).astype("float32"),
        "pil": image(i % 7),
        "jpeg": image(20),
        "png": image(i % 11),
        "jpegs": [image(4), image(5)],
        "array": [jpeg()],
    }


hashes = sorted(name for name in get_hashes() if not name.startswith("sha512_"))
wanted = {"hashes": hashes, "rows": {}}
for number, compression in enumerate(
    (None, "br", "br:3", "bz2:2", "gz", "snappy", "zstd", "zstd:19", "gz:1", "zstd:1", "bz2")
):
    out = f"{folder}/{str(compression).replace(':', '-')}"
    with MDSWriter(out=out, columns=COLUMNS, compression=compression, hashes=hashes, size_limit="20kb") as writer:
        for i in range(40):
            writer.write(sample(i, number))
    skipped = ("jpeg", "png", "jpegs", "array")
    rows = [
        {name: shown(value) for name, value in row.items() if name not in skipped}
        for row in StreamingDataset(local=out, shuffle=False, batch_size=1)
    ]
    wanted["rows"][out.rpartition("/")[2]] = rows
print(json.dumps(wanted))
