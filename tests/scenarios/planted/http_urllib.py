# SPDX-License-Identifier: Apache-2.0
"""Each sample is an object of an HTTP store that answers after 20 ms."""

import io
import urllib.request

import numpy as np
import torch
from store import serve
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Objects(Dataset):
    def __init__(self, address, local):
        self.address = address
        self.cache = [self.fetch(i) for i in range(8)] if local else None

    def __len__(self):
        return 8 * 100

    def fetch(self, index):
        with urllib.request.urlopen(f"{self.address}/{index % 8}.npy") as reply:
            return reply.read()

    def __getitem__(self, index):
        data = self.cache[index % 8] if self.cache else self.fetch(index)
        return torch.from_numpy(np.load(io.BytesIO(data)))


if __name__ == "__main__":
    args = arguments()
    with serve(0.02) as address:
        loader = DataLoader(Objects(address, args.fixed), batch_size=8, num_workers=2)
        train(loader, 0.04)
