# SPDX-License-Identifier: Apache-2.0
"""A container's /dev/shm of 64 MB, which the batches in flight nearly fill."""

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Large(Dataset):
    def __len__(self):
        return 8 * 60

    def __getitem__(self, index):
        return torch.zeros(3, 240, 240)


if __name__ == "__main__":
    arguments()
    loader = DataLoader(Large(), batch_size=8, num_workers=2, prefetch_factor=5)
    train(loader, 0.1)
