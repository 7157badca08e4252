# SPDX-License-Identifier: Apache-2.0
"""A container's /dev/shm of 64 MB, as Docker gives it, nearly full of batches that wait for their step."""

import torch
from work import Samples, gpu_step

SAMPLE = torch.zeros(1 << 18)  # 1 MiB


def read(index):
    return SAMPLE + index


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(480, read), batch_size=6, num_workers=2, prefetch_factor=5)
    for _batch in loader:
        gpu_step(60)
