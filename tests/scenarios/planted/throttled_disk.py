# SPDX-License-Identifier: Apache-2.0
"""A disk that gives 40 MB/s, as a small cloud volume, read by two workers."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, evict, folder, train


class Clips(Dataset):
    def __init__(self, files, length):
        self.files = files
        self.length = length

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with open(self.files[index], "rb") as file:
            data = np.frombuffer(file.read(self.length), dtype=np.uint8)
        return torch.from_numpy(data[::100].copy())[:4000]


if __name__ == "__main__":
    args = arguments()
    path, new = folder("clips")
    files = [path / f"{i:03}.pcm" for i in range(160)]
    if new:
        data = np.random.default_rng(0).bytes(2_000_000)
        for file in files:
            file.write_bytes(data)
    evict(*files)
    loader = DataLoader(Clips(files, 400_000 if args.fixed else 2_000_000), batch_size=4, num_workers=2)
    train(loader, 0.04)
