# SPDX-License-Identifier: Apache-2.0
"""Workers that load something at their start in each short epoch, after a sampler that sorts everything anew."""

import torch
from epoch_border import ByLength
from work import Samples, gpu_step
from worker_startup import load_vocabulary

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(
        Samples(64, torch.tensor), batch_size=8, num_workers=2, sampler=ByLength(), worker_init_fn=load_vocabulary
    )
    for _epoch in range(5):
        for _batch in loader:
            gpu_step(8)
