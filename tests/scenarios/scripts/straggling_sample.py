# SPDX-License-Identifier: Apache-2.0
"""One sample in 64 takes 400 ms; the batches after it wait for its batch."""

import time

import torch
from work import Samples, gpu_step, mended

SLOW = 0.001 if mended("straggling_sample") else 0.4


def read(index):
    time.sleep(SLOW if index % 64 == 9 else 0.001)
    return torch.tensor(index)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(512, read), batch_size=8, num_workers=2)
    for _batch in loader:
        gpu_step(15)
