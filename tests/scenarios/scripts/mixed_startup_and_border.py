# SPDX-License-Identifier: Apache-2.0
"""Workers that load something at their start in each short epoch, while a sampler sorts everything anew for longer."""

import torch
from work import Samples, burn, gpu_step, mended
from worker_startup import load_vocabulary


class ByLength(torch.utils.data.Sampler):
    def __iter__(self):
        if not mended("epoch_border"):
            burn(600)
        return iter(range(64))

    def __len__(self):
        return 64


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(
        Samples(64, torch.tensor), batch_size=8, num_workers=1, sampler=ByLength(), worker_init_fn=load_vocabulary
    )
    for _epoch in range(4):
        for _batch in loader:
            gpu_step(8)
