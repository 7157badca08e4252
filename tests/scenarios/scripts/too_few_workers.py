# SPDX-License-Identifier: Apache-2.0
"""One worker computes all the time, and another core is free."""

import torch
from work import Samples, burn, gpu_step


def augment(index):
    burn(4)
    return torch.tensor(index)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(480, augment), batch_size=8, num_workers=1)
    for _batch in loader:
        gpu_step(3)
