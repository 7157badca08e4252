# SPDX-License-Identifier: Apache-2.0
"""Half of a sample's time goes to late storage, half to augmentation."""

import time

import torch
from work import Samples, burn, gpu_step, mended


def read(index):
    time.sleep(0.006)
    if not mended("cpu_transform"):
        burn(5)
    return torch.tensor(index)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(480, read), batch_size=8, num_workers=3)
    for _batch in loader:
        gpu_step(1)
