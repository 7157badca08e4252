# SPDX-License-Identifier: Apache-2.0
"""Twelve workers that sort arrays on two CPUs at most."""

import numpy as np
import torch


class Sorted(torch.utils.data.Dataset):
    def __len__(self):
        return 2400

    def __getitem__(self, index):
        values = np.random.default_rng(index).standard_normal(60_000)
        return torch.from_numpy(np.sort(values)[::6000].copy())


if __name__ == "__main__":
    torch.set_num_threads(1)
    for _batch in torch.utils.data.DataLoader(Sorted(), batch_size=10, num_workers=12):
        pass
