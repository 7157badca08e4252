# SPDX-License-Identifier: Apache-2.0
"""Samples come through a `requests` session from a store with a latency of 8 ms, by one worker."""

import io

import numpy as np
import requests
import torch
from store import serve
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Objects(Dataset):
    def __init__(self, address, local):
        self.address = address
        self.session = None
        self.cache = [requests.get(f"{address}/{i}.npy").content for i in range(8)] if local else None

    def __len__(self):
        return 16 * 60

    def __getitem__(self, index):
        if self.cache:
            data = self.cache[index % 8]
        else:
            if self.session is None:
                self.session = requests.Session()
            data = self.session.get(f"{self.address}/{index % 8}.npy").content
        return torch.from_numpy(np.load(io.BytesIO(data)))


if __name__ == "__main__":
    args = arguments()
    with serve(0.008) as address:
        loader = DataLoader(Objects(address, args.fixed), batch_size=16, num_workers=1)
        train(loader, 0.05)
