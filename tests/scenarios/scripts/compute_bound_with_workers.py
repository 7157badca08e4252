# SPDX-License-Identifier: Apache-2.0
"""The device is the slow part, and one worker keeps up with it."""

import torch
from work import Samples, burn, gpu_step


def read(index):
    burn(0.2)
    return torch.tensor(index)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(480, read), batch_size=8, num_workers=1)
    for _batch in loader:
        gpu_step(40)
