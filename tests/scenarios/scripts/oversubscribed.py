# SPDX-License-Identifier: Apache-2.0
"""Eight workers share one core."""

import os

import torch
from cpu_transform import augment
from work import Samples, gpu_step

if __name__ == "__main__":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    many = Samples(1200, augment)  # so that what all workers begin with is a small part
    loader = torch.utils.data.DataLoader(many, batch_size=8, num_workers=8)
    for _batch in loader:
        gpu_step(1)
