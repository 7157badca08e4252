# SPDX-License-Identifier: Apache-2.0
"""Thousands of files of 3 KB, none of them in the page cache."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, evict, folder, train


class Tiny(Dataset):
    def __init__(self, files, packed):
        self.files = files
        self.packed = packed

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        if self.packed is not None:
            return torch.from_numpy(self.packed[index])
        with open(self.files[index], "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)


if __name__ == "__main__":
    args = arguments()
    path, new = folder("tiny")
    files = [path / f"{i:05}" for i in range(12_000)]
    if new:
        for file in files:
            file.write_bytes(np.random.default_rng(0).bytes(3000))
        np.zeros((len(files), 3000), dtype=np.uint8).tofile(path / "packed")
    evict(*files)
    packed = np.fromfile(path / "packed", dtype=np.uint8).reshape(-1, 3000) if args.fixed else None
    loader = DataLoader(Tiny(files, packed), batch_size=128, shuffle=True, num_workers=1)
    train(loader, 0.01)
