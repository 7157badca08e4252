# SPDX-License-Identifier: Apache-2.0
"""Volumes are stored as float64, eight times the bytes that they need, and read cold."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, evict, folder, train


class Volumes(Dataset):
    def __init__(self, files, dtype):
        self.files = files
        self.dtype = dtype

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        volume = np.fromfile(self.files[index], dtype=self.dtype)
        return torch.from_numpy(volume[::64].astype(np.float32))


if __name__ == "__main__":
    args = arguments()
    name = "uint8" if args.fixed else "float64"
    path, new = folder("volumes_" + name)
    files = [path / f"{i:03}.bin" for i in range(48)]
    if new:
        volume = np.random.default_rng(0).integers(0, 255, 5_000_000).astype(name)
        for file in files:
            volume.tofile(file)
    evict(*files)
    loader = DataLoader(Volumes(files, np.dtype(name)), batch_size=2, num_workers=2)
    train(loader, 0.03)
