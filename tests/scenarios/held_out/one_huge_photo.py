# SPDX-License-Identifier: Apache-2.0
"""Thumbnails, and sometimes a photo that was not reduced."""

import io
import time

import numpy as np
import torch
from PIL import Image


def encoded(width, height):
    noise = np.random.default_rng(width).integers(0, 255, (height // 40, width // 40, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize((width, height)).save(buffer, "JPEG")
    return buffer.getvalue()


THUMBNAIL, PHOTO = encoded(80, 80), encoded(6000, 5000)


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 1440

    def __getitem__(self, index):
        data = PHOTO if index % 144 == 77 else THUMBNAIL
        return torch.from_numpy(np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))[:64, :64].copy())


if __name__ == "__main__":
    torch.set_num_threads(1)
    for _batch in torch.utils.data.DataLoader(Pictures(), batch_size=12, num_workers=2):
        time.sleep(0.02)
