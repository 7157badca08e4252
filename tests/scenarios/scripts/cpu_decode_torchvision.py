# SPDX-License-Identifier: Apache-2.0
"""A folder of images with torchvision's transforms; decoding is most of it."""

import torch
from torchvision import transforms
from work import Samples, enough, gpu_step, jpeg, opener

OPENED = opener(jpeg(1024))
TRANSFORM = transforms.Compose([transforms.CenterCrop(32), transforms.ToTensor()])


def read(index):
    return TRANSFORM(OPENED().convert("RGB"))


if __name__ == "__main__":
    for _batch in torch.utils.data.DataLoader(Samples(enough(320), read), batch_size=8, num_workers=2):
        gpu_step(1)
