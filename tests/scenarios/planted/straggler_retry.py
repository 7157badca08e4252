# SPDX-License-Identifier: Apache-2.0
"""A few records take 900 ms to parse, the others 4 ms."""

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, burn, train


class Records(Dataset):
    def __init__(self, slow):
        self.slow = slow

    def __len__(self):
        return 8 * 100

    def __getitem__(self, index):
        burn(0.9 if self.slow and index % 80 == 17 else 0.004)
        return torch.zeros(128)


if __name__ == "__main__":
    args = arguments()
    loader = DataLoader(Records(not args.fixed), batch_size=8, num_workers=2)
    train(loader, 0.05)
