# SPDX-License-Identifier: Apache-2.0
"""collate_fn pads sequences token by token in Python."""

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Sequences(Dataset):
    def __len__(self):
        return 64 * 70

    def __getitem__(self, index):
        return torch.arange(100 + index * 37 % 400)


def pad_slowly(samples):
    longest = max(len(sample) for sample in samples)
    rows = []
    for sample in samples:
        row = [0] * longest
        for i, token in enumerate(sample.tolist()):
            row[i] = token if token > 3 else 1
        rows.append(row)
    mask = [[1 if i < len(sample) else 0 for i in range(longest)] for sample in samples]
    return torch.tensor(rows), torch.tensor(mask)


def pad(samples):
    rows = pad_sequence(samples, batch_first=True)
    return rows, rows > 0


if __name__ == "__main__":
    args = arguments()
    loader = DataLoader(Sequences(), batch_size=64, num_workers=2, collate_fn=pad if args.fixed else pad_slowly)
    train(loader, 0.01)
