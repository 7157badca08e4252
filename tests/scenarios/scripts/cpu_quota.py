# SPDX-License-Identifier: Apache-2.0
"""Two workers in a container that may use half a CPU: they are stopped for most of every tenth of a second."""

import torch
from work import Samples, burn, enough, gpu_step


def augment(index):
    burn(2)
    return torch.tensor(index)


if __name__ == "__main__":
    for _batch in torch.utils.data.DataLoader(Samples(enough(400), augment), batch_size=8, num_workers=2):
        gpu_step(1)
