# SPDX-License-Identifier: Apache-2.0
"""The container's memory is smaller than the dataset, which is read again in each epoch."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, evict, folder, train


class Arrays(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return torch.from_numpy(np.fromfile(self.files[index], dtype=np.uint8)[::256].copy())


if __name__ == "__main__":
    arguments()
    path, new = folder("too_large")
    files = [path / f"{i:03}.bin" for i in range(96)]
    if new:
        data = np.random.default_rng(0).bytes(7_000_000)
        for file in files:
            file.write_bytes(data)
    evict(*files)  # pages of an earlier run count for no container
    loader = DataLoader(Arrays(files), batch_size=4, num_workers=2, persistent_workers=True)
    train(loader, 0.003, epochs=4)
