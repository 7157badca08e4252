# SPDX-License-Identifier: Apache-2.0
"""The dataset sleeps 6 ms after each sample, to respect the rate limit of a service."""

import time

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Limited(Dataset):
    def __init__(self, pause):
        self.pause = pause

    def __len__(self):
        return 16 * 80

    def __getitem__(self, index):
        time.sleep(self.pause)
        return torch.full((256,), float(index))


if __name__ == "__main__":
    args = arguments()
    loader = DataLoader(Limited(0 if args.fixed else 0.006), batch_size=16, num_workers=2)
    train(loader, 0.02)
