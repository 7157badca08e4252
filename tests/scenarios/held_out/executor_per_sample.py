# SPDX-License-Identifier: Apache-2.0
"""Each sample creates an executor of threads for its four parts, and joins it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch


def part(seed):
    return np.sort(np.random.default_rng(seed).standard_normal(30_000))[0]


class Parts(torch.utils.data.Dataset):
    def __len__(self):
        return 720

    def __getitem__(self, index):
        with ThreadPoolExecutor(4) as executor:
            return torch.tensor(list(executor.map(part, range(index, index + 4))))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for _batch in torch.utils.data.DataLoader(Parts(), batch_size=8, num_workers=2):
        pass
