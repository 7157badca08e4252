# SPDX-License-Identifier: Apache-2.0
"""Short epochs over a few samples, which are drawn from two million weights before each epoch."""

import time

import torch


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 2_000_000

    def __getitem__(self, index):
        return torch.full((4,), float(index))


class Drawn(torch.utils.data.Sampler):
    weights = torch.rand(2_000_000)

    def __iter__(self):
        order = sorted(torch.multinomial(self.weights, 400_000).tolist())
        return iter(order[:160])

    def __len__(self):
        return 160


if __name__ == "__main__":
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Rows(), 8, sampler=Drawn(), num_workers=1, persistent_workers=True)
    for _epoch in range(8):
        for _batch in loader:
            time.sleep(0.006)
