# SPDX-License-Identifier: Apache-2.0
"""Each sample is a file on storage that answers late."""

import time

import torch
from work import Samples, gpu_step


def read(index):
    time.sleep(0.012)  # what a request to an object store takes, or a seek
    return torch.tensor(index)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(480, read), batch_size=8, num_workers=2)
    for _batch in loader:
        gpu_step(2)
