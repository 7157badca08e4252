# SPDX-License-Identifier: Apache-2.0
"""Samples of 12 KB, a file each, on a disk that answers 400 requests per second; each is new to the page cache."""

import tempfile

import torch
from storage_bandwidth import Files
from work import Samples, gpu_step

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        samples = Samples(1600, Files(folder, 1600, 12 << 10))
        for _batch in torch.utils.data.DataLoader(samples, batch_size=32, num_workers=2, shuffle=True):
            gpu_step(1)
