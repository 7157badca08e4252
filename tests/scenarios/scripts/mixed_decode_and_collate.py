# SPDX-License-Identifier: Apache-2.0
"""Two workers are busy with images, and with joining them."""

import torch
from cpu_decode import read
from work import Samples, burn, gpu_step, mended


def join(samples):
    if not mended("collate"):
        burn(25)
    return torch.stack(samples)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(640, read), batch_size=8, num_workers=2, collate_fn=join)
    for _batch in loader:
        gpu_step(1)
