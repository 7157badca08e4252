# SPDX-License-Identifier: Apache-2.0
"""Rank 1 of two draws samples that take three times as long."""

import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from workload import arguments, train


class Records(Dataset):
    def __init__(self, pause):
        self.pause = pause

    def __len__(self):
        return 16 * 80

    def __getitem__(self, index):
        time.sleep(self.pause)
        return torch.zeros(64)


def step(seconds):
    time.sleep(seconds)
    dist.all_reduce(torch.zeros(1000))


if __name__ == "__main__":
    args = arguments()
    dist.init_process_group("gloo")
    dataset = Records(0.012 if dist.get_rank() == 1 and not args.fixed else 0.003)
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset), num_workers=1)
    train(loader, 0.03, work=step)
    dist.destroy_process_group()
