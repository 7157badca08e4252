# SPDX-License-Identifier: Apache-2.0
"""Feedline's own loader over tar shards of large photos: two threads decode, a small model follows."""

import io
import tarfile
import tempfile

import numpy as np
import torch
from PIL import Image

import feedline


def write_shards(folder):
    noise = np.random.default_rng(2).integers(0, 255, (110, 140, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize((1400, 1100), Image.BICUBIC).save(buffer, "JPEG", quality=95)
    for shard in range(2):
        with tarfile.open(f"{folder}/{shard:03d}.tar", "w") as tar:
            for number in range(24):
                for suffix, data in (("jpg", buffer.getvalue()), ("cls", str(number % 5).encode())):
                    member = tarfile.TarInfo(f"{shard:02d}{number:04d}.{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        write_shards(folder)
        data = feedline.open(folder + "/{000..001}.tar").resize((48, 48))
        model = torch.nn.Linear(48 * 48 * 3, 5)
        with data.loader(batch_size=4, shuffle=True, num_workers=2) as loader:
            for _epoch in range(8):
                for image, label in loader:
                    torch.nn.functional.cross_entropy(model(image.flatten(1).float()), label).backward()
