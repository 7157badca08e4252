# SPDX-License-Identifier: Apache-2.0
"""collate_fn creates a ThreadPool for each batch and waits for all of its threads to end."""

from multiprocessing.pool import ThreadPool

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Signals(Dataset):
    def __len__(self):
        return 16 * 100

    def __getitem__(self, index):
        return np.full(4000, index, dtype=np.float32)


def scale(signal):
    return (signal - signal.mean()) / (signal.std() + 1)


def with_pool(samples):
    with ThreadPool(32) as pool:
        out = pool.map(scale, samples)
        pool.close()
        pool.join()
    return torch.from_numpy(np.stack(out))


def without(samples):
    return torch.from_numpy(np.stack([scale(sample) for sample in samples]))


if __name__ == "__main__":
    args = arguments()
    loader = DataLoader(Signals(), batch_size=16, num_workers=1, collate_fn=without if args.fixed else with_pool)
    train(loader, 0.005)
