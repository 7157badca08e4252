# SPDX-License-Identifier: Apache-2.0
"""Samples of 12 KB, a file each, on a disk that answers 400 requests per second; each is new to the page cache."""

import tempfile

import torch
from storage_bandwidth import Files
from work import Samples, gpu_step

if __name__ == "__main__":
    files = Files(tempfile.mkdtemp(), 1600, 12 << 10)  # left there: whoever started this script removes it
    for _batch in torch.utils.data.DataLoader(Samples(1600, files), batch_size=32, num_workers=2, shuffle=True):
        gpu_step(1)
