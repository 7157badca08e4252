# SPDX-License-Identifier: Apache-2.0
"""Samples cost nothing; joining them costs a lot."""

import torch
from work import Samples, burn, gpu_step


def pad_in_python(samples):
    burn(20)
    return torch.stack(samples)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(
        Samples(560, torch.tensor), batch_size=8, num_workers=2, collate_fn=pad_in_python
    )
    for _batch in loader:
        gpu_step(1)
