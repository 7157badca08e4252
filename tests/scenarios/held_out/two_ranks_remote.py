# SPDX-License-Identifier: Apache-2.0
"""Two ranks that both read from slow storage, in one worker each, and average gradients."""

import time

import torch
import torch.distributed as dist


class Remote(torch.utils.data.Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, index):
        time.sleep(0.008)
        return torch.full((16,), float(index))


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    data = Remote()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
    sampler = torch.utils.data.distributed.DistributedSampler(data)
    for batch in torch.utils.data.DataLoader(data, 4, sampler=sampler, num_workers=1):
        model(batch).square().mean().backward()
    dist.destroy_process_group()
