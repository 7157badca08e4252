# SPDX-License-Identifier: Apache-2.0
"""Two ranks that meet in every step; the second one's storage is slow."""

import os
import time

import torch
import torch.distributed as dist
from work import Samples, gpu_step, mended

SLOW = os.environ.get("RANK") == "1" and not mended("straggling_rank")


def read(index):
    time.sleep(0.006 if SLOW else 0.0002)
    return torch.tensor(index)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    for batch in torch.utils.data.DataLoader(Samples(800, read), batch_size=8):
        gpu_step(5)
        dist.all_reduce(batch)
    dist.destroy_process_group()
