# SPDX-License-Identifier: Apache-2.0
"""A container's /dev/shm of 56 MiB, nearly full: 20 batches of 2.5 MiB wait, and one is being used."""

import torch
from work import Samples, gpu_step

SAMPLE = torch.zeros(5 << 17)  # 2.5 MiB


def read(index):
    return SAMPLE + index


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(100, read), batch_size=1, num_workers=2, prefetch_factor=10)
    for _batch in loader:
        gpu_step(60)
