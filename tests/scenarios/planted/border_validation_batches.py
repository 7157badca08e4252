# SPDX-License-Identifier: Apache-2.0
"""Epochs of six large batches with costly decoding, which no batch is prepared for in advance."""

import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler
from workload import arguments, burn, train


class Scans(Dataset):
    def __len__(self):
        return 6 * 24

    def __getitem__(self, index):
        burn(0.005)
        return torch.zeros(3, 64, 64)


if __name__ == "__main__":
    args = arguments()
    dataset = Scans()
    epochs = 8
    sampler = RandomSampler(dataset, replacement=True, num_samples=len(dataset) * epochs) if args.fixed else None
    loader = DataLoader(
        dataset, batch_size=24, sampler=sampler, num_workers=1, persistent_workers=True, prefetch_factor=4
    )
    train(loader, 0.15, epochs=1 if args.fixed else epochs)
