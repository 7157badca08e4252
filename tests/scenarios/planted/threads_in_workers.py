# SPDX-License-Identifier: Apache-2.0
"""worker_init_fn gives every worker eight torch threads; twelve workers share a few CPUs."""

import os

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Spectra(Dataset):
    def __len__(self):
        return 4 * 100

    def __getitem__(self, index):
        signal = torch.sin(torch.arange(400_000) * (index + 1) * 0.001)
        return torch.stft(signal, 512, return_complex=True, window=torch.hann_window(512)).abs().mean(1)


def more_threads(worker):
    torch.set_num_threads(8)


if __name__ == "__main__":
    args = arguments()
    cpus = len(os.sched_getaffinity(0))
    loader = DataLoader(
        Spectra(),
        batch_size=4,
        num_workers=cpus if args.fixed else 6 * cpus,
        worker_init_fn=None if args.fixed else more_threads,
    )
    train(loader, 0.02)
