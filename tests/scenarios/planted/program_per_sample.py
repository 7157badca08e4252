# SPDX-License-Identifier: Apache-2.0
"""Each sample is the output of a program that waits for 15 ms (a converter on another host)."""

import subprocess

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Converted(Dataset):
    def __init__(self, convert):
        self.convert = convert

    def __len__(self):
        return 8 * 60

    def __getitem__(self, index):
        data = bytes(256)
        if self.convert:
            data = subprocess.run(
                ["sh", "-c", "sleep 0.015; head -c 256 /dev/zero"], stdout=subprocess.PIPE, check=True
            ).stdout
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)


if __name__ == "__main__":
    args = arguments()
    loader = DataLoader(Converted(not args.fixed), batch_size=8, num_workers=2)
    train(loader, 0.03)
