# SPDX-License-Identifier: Apache-2.0
"""The container may use 0.6 CPUs; the workers compute until it is throttled."""

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, burn, train


class Computed(Dataset):
    def __len__(self):
        return 8 * 70

    def __getitem__(self, index):
        burn(0.006)
        return torch.zeros(64)


if __name__ == "__main__":
    arguments()
    loader = DataLoader(Computed(), batch_size=8, num_workers=2)
    train(loader, 0.03)
