# SPDX-License-Identifier: Apache-2.0
"""Writes LitData datasets with its own writer, and prints what it reads back. Run by its own interpreter."""

import json
import shutil
import sys

import numpy as np
import torch
from litdata import StreamingDataset
from litdata.streaming.item_loader import TokensLoader
from litdata.streaming.writer import BinaryWriter
from PIL import Image

folder, draw = sys.argv[1], np.random.default_rng(7)
KINDS = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
]


def sample(i, number):
    return {
        "whole": int(draw.integers(-(2**63), 2**63)),
        "real": 1 / (i + 1),
        "yes": i % 3 == 0,
        "text": f"tëxt {i} " * (i % 5 + 1),
        "raw": draw.bytes(i * 31 % 300),
        "meta": {"n": i, "name": f"x{i}", "tensor": torch.tensor(draw.normal(size=(2, i % 4 + 1))).to(KINDS[number])},
        "other": torch.tensor(draw.normal(size=(i % 3 + 1, 1, 2))).to(KINDS[number + 4]),
        "flat": torch.arange(i % 6 + 1),
        "numpy": draw.integers(0, 9, (i % 3 + 1, 2)).astype("float32"),
        "line": np.arange(i % 7 + 1, dtype="int16"),
        "pil": Image.fromarray(draw.integers(0, 256, (3, i % 4 + 1, 3), dtype=np.uint8)),
    }


def shown(value):
    if isinstance(value, Image.Image):
        value = np.asarray(value)
    if isinstance(value, torch.Tensor):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return [value.dtype.name, list(value.shape), value.tobytes().hex()]
    return bytes(value).hex() if isinstance(value, bytes | memoryview) else value


wanted = {}
for number, (name, options) in enumerate(
    {
        "plain": {},
        "chunk": {"compression": "zstd", "compression_level": "chunk"},
        "batch": {"compression": "zstd:7"},
        "frames": {"compression": "zstd", "compression_batch_size": 3},
        "sample": {"compression": "zstd", "compression_level": "sample"},
    }.items()
):
    writer = BinaryWriter(f"{folder}/{name}", chunk_size=16, **options)
    for i in range(40):
        writer[i] = sample(i, number)
    writer.done()
    writer.merge()
    rows = []
    shutil.copytree(f"{folder}/{name}", f"{folder}/read-{name}")  # reading replaces compressed chunks
    for row in StreamingDataset(f"{folder}/read-{name}", shuffle=False):
        meta = row.pop("meta")
        rows.append({key: shown(value) for key, value in row.items()})
        rows[-1] |= {"n": meta["n"], "name": meta["name"], "tensor": shown(meta["tensor"])}
    wanted[name] = rows
writer = BinaryWriter(f"{folder}/tokens", chunk_bytes="64MB", item_loader=TokensLoader())
for i in range(10):
    writer[i] = torch.arange(i + 3) * 7
writer.done()
writer.merge()
for number, dtype in enumerate((torch.int64, torch.int32, torch.uint16)):
    writer = BinaryWriter(f"{folder}/blocks-{number}", chunk_size=100, item_loader=TokensLoader())
    for _ in range(23):
        writer[_] = torch.from_numpy(draw.integers(0, 30_000, draw.integers(1, 60))).to(dtype)
    writer.done()
    writer.merge()
    blocks = StreamingDataset(f"{folder}/blocks-{number}", item_loader=TokensLoader(block_size=17), shuffle=False)
    wanted[f"blocks-{number}"] = [block.tolist() for block in blocks]
print(json.dumps(wanted))
