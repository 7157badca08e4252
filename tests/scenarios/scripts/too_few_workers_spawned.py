# SPDX-License-Identifier: Apache-2.0
"""The same with a worker that is spawned: the probe must find its way into it."""

import torch
from too_few_workers import augment
from work import Samples, gpu_step

if __name__ == "__main__":
    many = Samples(1200, augment)  # so that a second worker's start is a small part
    loader = torch.utils.data.DataLoader(many, batch_size=8, num_workers=1, multiprocessing_context="spawn")
    for _batch in loader:
        gpu_step(3)
