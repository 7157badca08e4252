# SPDX-License-Identifier: Apache-2.0
"""Short epochs, and workers that load something big at their start, in each of them."""

import torch
from work import Samples, burn, gpu_step


def load_vocabulary(_worker):
    burn(200)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(
        Samples(64, torch.tensor), batch_size=8, num_workers=2, worker_init_fn=load_vocabulary
    )
    for _epoch in range(4):
        for _batch in loader:
            gpu_step(10)
