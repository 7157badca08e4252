# SPDX-License-Identifier: Apache-2.0
"""The dataset computes distances of all pairs of points in a Python loop, on all CPUs."""

import math
import os

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Molecules(Dataset):
    def __init__(self, vectorised):
        self.vectorised = vectorised
        self.points = torch.rand(60, 3)
        self.tuples = self.points.tolist()

    def __len__(self):
        return 16 * 80

    def __getitem__(self, index):
        if self.vectorised:
            return torch.cdist(self.points, self.points)
        return torch.tensor(
            [
                [math.sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True))) for q in self.tuples]
                for p in self.tuples
            ]
        )


if __name__ == "__main__":
    args = arguments()
    loader = DataLoader(Molecules(args.fixed), batch_size=16, num_workers=len(os.sched_getaffinity(0)))
    train(loader, 0.02)
