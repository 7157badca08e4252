# SPDX-License-Identifier: Apache-2.0
"""Short epochs; before each, the sampler sorts everything anew."""

import torch
from work import Samples, burn, gpu_step, mended


class ByLength(torch.utils.data.Sampler):
    def __iter__(self):
        if not mended("epoch_border"):
            burn(150)
        return iter(range(64))

    def __len__(self):
        return 64


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(
        Samples(64, torch.tensor), batch_size=8, num_workers=2, sampler=ByLength(), persistent_workers=True
    )
    for _epoch in range(6):
        for _batch in loader:
            gpu_step(8)
