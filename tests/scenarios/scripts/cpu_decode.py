# SPDX-License-Identifier: Apache-2.0
"""Large images on two cores: both workers decode all the time."""

import io

import torch
from PIL import Image
from work import Samples, enough, gpu_step, jpeg, mended

ENCODED = jpeg(768)

Image.core.set_blocks_max(16)  # it keeps images' memory: what the kernel takes for new pages is not decoding


def opened():
    return Image.open(io.BytesIO(ENCODED))


ONCE = opened() if mended("cpu_decode") else None
if ONCE is not None:
    ONCE.load()


def read(index):
    image = (ONCE or opened()).convert("RGB")
    return torch.tensor(image.getpixel((index % 700, 3)))


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(enough(400), read), batch_size=8, num_workers=2)
    for _batch in loader:
        gpu_step(1)
