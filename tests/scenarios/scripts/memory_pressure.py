# SPDX-License-Identifier: Apache-2.0
"""A mapped dataset that is larger than the container's memory: what one sample brings in, another must let go."""

import os
import tempfile

import numpy as np
import torch
from work import Samples, gpu_step, mended

MIB = 1 << 20


class Mapped:
    def __init__(self, path, size):
        with open(path, "wb") as file:
            for _ in range(size // MIB):
                file.write(os.urandom(MIB))
            file.flush()
            os.fsync(file.fileno())
        self.pixels = np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, MIB // 2)

    def __call__(self, index):
        return torch.tensor(int(self.pixels[index % len(self.pixels), ::4096].sum()))


if __name__ == "__main__":
    data = Mapped(
        os.path.join(tempfile.mkdtemp(), "data.bin"), (300 if mended("memory_pressure") else 600) * MIB
    )  # whoever started this script removes it
    for _epoch in range(2):
        for _batch in torch.utils.data.DataLoader(Samples(1200, data), batch_size=16, num_workers=2, shuffle=True):
            gpu_step(1)
