# SPDX-License-Identifier: Apache-2.0
"""A sample sleeps 20 ms, which no file is to blame for, and then opens a small file that is in the page cache."""

import os
import tempfile
import time
from pathlib import Path

import torch
from work import Samples, gpu_step, mended


class Read:
    def __init__(self, count):
        self.paths = [Path(tempfile.mkdtemp(), f"{number:05}.bin") for number in range(count)]
        for path in self.paths:
            path.write_bytes(os.urandom(12 << 10))

    def __call__(self, index):
        if not mended("blocked_outside_files"):
            time.sleep(0.02)
        return torch.tensor(self.paths[index % len(self.paths)].read_bytes()[0])


if __name__ == "__main__":
    for _batch in torch.utils.data.DataLoader(Samples(480, Read(64)), batch_size=8, num_workers=2):
        gpu_step(2)
