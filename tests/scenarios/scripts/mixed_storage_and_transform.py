# SPDX-License-Identifier: Apache-2.0
"""Half of a sample's time goes to late storage, half to augmentation."""

import torch
from late_files import LateFiles
from work import Samples, burn, gpu_step, mended


class Read:
    def __init__(self):
        self.files = LateFiles(6)

    def __call__(self, index):
        value = self.files(index)
        if not mended("cpu_transform"):
            burn(5)
        return value


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(480, Read()), batch_size=8, num_workers=3)
    for _batch in loader:
        gpu_step(1)
