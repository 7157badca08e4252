# SPDX-License-Identifier: Apache-2.0
"""A folder of images with torchvision's transforms; decoding is most of it."""

import io

import torch
from PIL import Image
from torchvision import transforms
from work import Samples, enough, gpu_step, jpeg, mended

ENCODED = jpeg(1024)
TRANSFORM = transforms.Compose([transforms.CenterCrop(32), transforms.ToTensor()])

Image.core.set_blocks_max(16)  # it keeps images' memory: what the kernel takes for new pages is not decoding


def opened():
    return Image.open(io.BytesIO(ENCODED))


ONCE = opened() if mended("cpu_decode") else None
if ONCE is not None:
    ONCE.load()


def read(index):
    return TRANSFORM((ONCE or opened()).convert("RGB"))


if __name__ == "__main__":
    for _batch in torch.utils.data.DataLoader(Samples(enough(320), read), batch_size=8, num_workers=2):
        gpu_step(1)
