# SPDX-License-Identifier: Apache-2.0
"""Augmentation in Python: both workers compute all the time."""

import torch
from work import Samples, burn, enough, gpu_step, mended


def augment(index):
    if not mended("cpu_transform"):
        burn(4)
    return torch.tensor(index)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(enough(480), augment), batch_size=8, num_workers=2)
    for _batch in loader:
        gpu_step(1)
