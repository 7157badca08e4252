#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of volumes_fuzz: NIfTI headers of both versions, metadata, and chunks with each codec."""

from __future__ import annotations

import json
import pathlib
import sys
import zlib

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "python"))
import made_volumes as made  # noqa: E402


def write(seeds: dict[str, bytes]) -> None:
    (HERE / "volumes").mkdir(exist_ok=True)
    for name, data in seeds.items():
        (HERE / "volumes" / name).write_bytes(data)


def metadata(codecs: list[object], **changes: object) -> bytes:
    array = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [8, 9, 10],
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 5, 6]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": codecs,
    }
    return json.dumps(array | changes).encode()


def main() -> int:
    values = np.zeros((2, 3, 4), "i2")
    headers = {
        f"nifti{version}_{name}": b"\0" + made.nifti(values, version=version, order=order)[:544]
        for version in (1, 2)
        for name, order in (("little", "<"), ("big", ">"))
    }
    write(headers | {"qform": b"\0" + made.nifti(values, quaternion=(0.5, 0, 0, 1, 2, 3), slope=2.0)[:352]})
    transpose = {"name": "transpose", "configuration": {"order": [2, 0, 1]}}
    v2 = {"zarr_format": 2, "shape": [8, 9], "chunks": [4, 5], "dtype": "<f4", "order": "F", "filters": None}
    data = bytes(range(120))
    chunk = {
        1: made.blosc(data, "lz4", 1, "bytes"),
        8: made.zstd(data),
        16: zlib.compress(data),
        24: made.lz4(data),
        33: made.blosc(data, "zstd", 1, "bits", block=64),
        40: made.with_crc(data),
    }
    write(
        {
            "plain": metadata([made.LITTLE], fill_value="NaN", data_type="float32"),
            "shards": metadata([made.sharding((2, 5, 3), [transpose, made.LITTLE, "zstd"], location="start")]),
            "v2": json.dumps(v2 | {"fill_value": 1.5, "compressor": {"id": "blosc"}}).encode(),
            "group": json.dumps(
                {"zarr_format": 3, "node_type": "group", "consolidated_metadata": {"metadata": {}}}
            ).encode(),
        }
        | {f"chunk{choice}": b"\x01" + bytes([choice]) + stored for choice, stored in chunk.items()},
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
