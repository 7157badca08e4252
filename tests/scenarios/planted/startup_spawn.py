# SPDX-License-Identifier: Apache-2.0
"""Short epochs; spawned workers import torchvision and pandas in each of them."""

import pandas  # noqa: F401
import torch
import torchvision  # noqa: F401
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Small(Dataset):
    def __len__(self):
        return 16 * 20

    def __getitem__(self, index):
        return torch.full((3, 32, 32), float(index))


if __name__ == "__main__":
    args = arguments()
    loader = DataLoader(
        Small(), batch_size=16, num_workers=1, multiprocessing_context="spawn", persistent_workers=args.fixed
    )
    train(loader, 0.03, epochs=3)
