# SPDX-License-Identifier: Apache-2.0
"""All workers take one lock around the device that they read from, and wait for each other."""

import contextlib
import multiprocessing
import time

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Instrument(Dataset):
    def __init__(self, lock):
        self.lock = lock

    def __len__(self):
        return 4 * 100

    def __getitem__(self, index):
        with self.lock or contextlib.nullcontext():
            time.sleep(0.012)
        return torch.full((256,), float(index))


if __name__ == "__main__":
    args = arguments()
    lock = None if args.fixed else multiprocessing.Lock()
    loader = DataLoader(Instrument(lock), batch_size=4, num_workers=4)
    train(loader, 0.02)
