# SPDX-License-Identifier: Apache-2.0
"""Each sample starts a pool of 16 threads for its 16 crops."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


def crop(seed):
    return torch.full((3, 8, 8), float(seed))


class Crops(Dataset):
    def __init__(self, pool):
        self.pool = pool

    def __len__(self):
        return 32 * 60

    def __getitem__(self, index):
        if not self.pool:
            return torch.stack([crop(i) for i in range(16)])
        with ThreadPoolExecutor(16) as pool:
            return torch.stack(list(pool.map(crop, range(16))))


if __name__ == "__main__":
    args = arguments()
    loader = DataLoader(Crops(not args.fixed), batch_size=32, num_workers=2)
    train(loader, 0.01)
