# SPDX-License-Identifier: Apache-2.0
"""Twenty workers on a machine with few CPUs, each computing over a few megabytes."""

import os

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Volumes(Dataset):
    def __len__(self):
        return 8 * 100

    def __getitem__(self, index):
        volume = np.random.default_rng(index).random((256, 4096), dtype=np.float32)
        return torch.from_numpy(np.sort(volume, axis=0)[:64].copy())


if __name__ == "__main__":
    args = arguments()
    cpus = len(os.sched_getaffinity(0))
    loader = DataLoader(Volumes(), batch_size=8, num_workers=cpus if args.fixed else 10 * cpus)
    train(loader, 0.02, limit=60)
