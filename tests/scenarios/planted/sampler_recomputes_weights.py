# SPDX-License-Identifier: Apache-2.0
"""A batch sampler draws each batch from updated weights of two million samples."""

import torch
from torch.utils.data import DataLoader, Dataset, Sampler
from workload import arguments, train


class Features(Dataset):
    def __len__(self):
        return 2_000_000

    def __getitem__(self, index):
        return torch.full((64,), float(index % 7))


class HardExamples(Sampler):
    def __init__(self, count, batches, size, every):
        self.losses = torch.rand(count)
        self.batches, self.size, self.every = batches, size, every

    def __len__(self):
        return self.batches

    def __iter__(self):
        for i in range(self.batches):
            if i % self.every == 0:
                weights = torch.softmax(self.losses * 2, 0)
                order = torch.multinomial(weights, self.size * self.every)
            begin = i % self.every * self.size
            yield order[begin : begin + self.size].tolist()


if __name__ == "__main__":
    args = arguments()
    sampler = HardExamples(2_000_000, 120, 32, 120 if args.fixed else 1)
    loader = DataLoader(Features(), batch_sampler=sampler, num_workers=2)
    train(loader, 0.02)
