# SPDX-License-Identifier: Apache-2.0
"""A mapped data set that is larger than the container's memory: each epoch reads again what the last one has read."""

import os
import tempfile

import numpy as np
import torch
from work import Samples, gpu_step

MIB = 1 << 20


class Mapped:
    def __init__(self, path, size):
        with open(path, "wb") as file:
            for _ in range(size // MIB):
                file.write(os.urandom(MIB))
            file.flush()
            os.fsync(file.fileno())
        self.pixels = np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, MIB // 4)

    def __call__(self, index):
        return torch.tensor(self.pixels[index % len(self.pixels), ::4096].sum())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        samples = Samples(2400, Mapped(os.path.join(folder, "data.bin"), 600 * MIB))
        for _epoch in range(3):
            for _batch in torch.utils.data.DataLoader(samples, batch_size=32, num_workers=2, shuffle=True):
                gpu_step(1)
