# SPDX-License-Identifier: Apache-2.0
"""Each sample gathers 24 random rows from one large file that is not in the page cache."""

import os

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, evict, folder, train

ROW = 4096


class Windows(Dataset):
    def __init__(self, file, rows, in_memory):
        self.rows = rows
        self.data = file.read_bytes() if in_memory else None
        self.descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_RANDOM)

    def __len__(self):
        return 16 * 80

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        parts = []
        for row in rng.integers(0, self.rows, 24):
            begin = int(row) * ROW
            data = self.data[begin : begin + ROW] if self.data else os.pread(self.descriptor, ROW, begin)
            parts.append(np.frombuffer(data, dtype=np.uint8)[:64])
        return torch.from_numpy(np.stack(parts))


if __name__ == "__main__":
    args = arguments()
    path, new = folder("rows")
    file = path / "features.bin"
    rows = 160_000
    if new:
        chunk = np.random.default_rng(0).bytes(ROW * 1000)
        with open(file, "wb") as out:
            for _ in range(rows // 1000):
                out.write(chunk)
    evict(file)
    loader = DataLoader(Windows(file, rows, args.fixed), batch_size=16, num_workers=1)
    train(loader, 0.02)
