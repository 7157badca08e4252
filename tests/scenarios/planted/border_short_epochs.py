# SPDX-License-Identifier: Apache-2.0
"""Epochs of eight batches: persistent workers begin each with an empty queue."""

import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler
from workload import arguments, train


class Volumes(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        import time

        # An instrument that answers after 100 ms.
        time.sleep(0.1)
        return torch.zeros(1, 16, 16, 16)


if __name__ == "__main__":
    args = arguments()
    dataset = Volumes()
    epochs = 10
    sampler = RandomSampler(dataset, replacement=True, num_samples=16 * epochs) if args.fixed else None
    loader = DataLoader(dataset, batch_size=2, sampler=sampler, num_workers=2, persistent_workers=True)
    train(loader, 0.12, epochs=1 if args.fixed else epochs)
