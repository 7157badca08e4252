# SPDX-License-Identifier: Apache-2.0
"""Labelled and unlabelled samples side by side; the unlabelled ones are augmented by one worker, and a CPU is free."""

import time

import numpy as np
import torch


class Labelled(torch.utils.data.Dataset):
    def __len__(self):
        return 600

    def __getitem__(self, index):
        return torch.zeros(64), index % 4


class Unlabelled(torch.utils.data.Dataset):
    def __len__(self):
        return 600

    def __getitem__(self, index):
        field = np.random.default_rng(index).standard_normal((160, 160))
        for _ in range(4):
            field = np.sort(field, axis=1) * 0.5
        return torch.from_numpy(field.mean(0)[:64]).float()


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Linear(64, 4)
    labelled = torch.utils.data.DataLoader(Labelled(), 6, num_workers=1)
    unlabelled = torch.utils.data.DataLoader(Unlabelled(), 6, num_workers=1)
    for (x, y), u in zip(labelled, unlabelled, strict=True):
        (torch.nn.functional.cross_entropy(model(x), y) + model(u).square().mean()).backward()
        time.sleep(0.002)
