# SPDX-License-Identifier: Apache-2.0
"""Samples cost nothing; joining them costs a lot."""

import torch
from work import Samples, burn, enough, gpu_step, mended


def pad_in_python(samples):
    if not mended("collate"):
        burn(20)
    return torch.stack(samples)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(
        Samples(enough(560), torch.tensor), batch_size=8, num_workers=2, collate_fn=pad_in_python
    )
    for _batch in loader:
        gpu_step(1)
