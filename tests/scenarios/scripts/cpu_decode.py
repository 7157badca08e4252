# SPDX-License-Identifier: Apache-2.0
"""Large images on two cores: both workers decode all the time."""

import torch
from work import Samples, enough, gpu_step, jpeg, opener

OPENED = opener(jpeg(768))


def read(index):
    image = OPENED().convert("RGB")
    return torch.tensor(image.getpixel((index % 700, 3)))


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(enough(400), read), batch_size=8, num_workers=2)
    for _batch in loader:
        gpu_step(1)
