# SPDX-License-Identifier: Apache-2.0
"""Files of 250 KB on a disk that serves 60 requests a second, as a hard disk with scattered files does."""

import io

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, evict, folder, train


class Arrays(Dataset):
    def __init__(self, files, in_memory):
        self.files = files
        self.contents = files[0].read_bytes() if in_memory else None

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        data = self.contents or self.files[index].read_bytes()
        return torch.from_numpy(np.load(io.BytesIO(data))[::16].copy())


if __name__ == "__main__":
    args = arguments()
    path, new = folder("slow_disk")
    files = [path / f"{i:03}.npy" for i in range(160)]
    if new:
        for file in files:
            np.save(file, np.zeros(64_000, dtype=np.float32))
    evict(*files)
    loader = DataLoader(Arrays(files, args.fixed), batch_size=4, shuffle=True, num_workers=2)
    train(loader, 0.03)
