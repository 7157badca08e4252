# SPDX-License-Identifier: Apache-2.0
"""Without workers; and one sample in 64 takes much longer than the others."""

import torch
from work import Samples, burn, gpu_step, mended

SLOW = 1 if mended("straggling_sample") else 200


def read(index):
    burn(SLOW if index % 64 == 9 else 1)
    return torch.tensor(index)


if __name__ == "__main__":
    for _batch in torch.utils.data.DataLoader(Samples(640, read), batch_size=8):
        gpu_step(4)
