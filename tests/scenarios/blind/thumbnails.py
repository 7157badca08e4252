# SPDX-License-Identifier: Apache-2.0
"""Feedline's own loader over a folder of thumbnails, one small file each, none of them in the page cache, on a disk
that serves a few hundred requests per second.
"""

import io
import os
import tarfile

import numpy as np
import torch
from PIL import Image
from planting import amount, planted, stored

import feedline

COUNT = amount(2400, 64)


def save(folder):
    noise = np.random.default_rng(5)
    with tarfile.open(folder / "all.tar", "w") as tar:
        for number in range(COUNT):
            encoded = io.BytesIO()
            Image.fromarray(noise.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(encoded, "JPEG", quality=80)
            path = folder / "thumbnails" / f"kind{number % 6}" / f"{number:05}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded.getvalue())
            for suffix, content in (("jpg", encoded.getvalue()), ("cls", str(number % 6).encode())):
                member = tarfile.TarInfo(f"{number:05}.{suffix}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    os.sync()


def forget(folder):
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = stored("thumbnails", save)
    pictures = feedline.open(folder / ("thumbnails" if planted("small_files") else "all.tar")).center_crop(32)
    forget(folder)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(32 * 32 * 3, 6))
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    with pictures.loader(batch_size=16, shuffle=True, num_workers=2) as loader:
        for picture, kind in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(picture.float() / 255), kind).backward()
            optimizer.step()
