# SPDX-License-Identifier: Apache-2.0
"""A batch sampler that searches a long list for each batch. It runs in the loop's process."""

import torch

LENGTHS = [(number * 7919) % 5003 for number in range(60_000)]


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return len(LENGTHS)

    def __getitem__(self, index):
        return torch.tensor(index)


class LikeLengths(torch.utils.data.Sampler):
    def __iter__(self):
        for step in range(150):
            wanted = (step * 131) % 5003
            near = sorted(range(len(LENGTHS)), key=lambda index: abs(LENGTHS[index] - wanted))
            yield near[:16]

    def __len__(self):
        return 150


if __name__ == "__main__":
    torch.set_num_threads(1)
    for _batch in torch.utils.data.DataLoader(Samples(), batch_sampler=LikeLengths(), num_workers=2):
        torch.ones(2000).sin()
