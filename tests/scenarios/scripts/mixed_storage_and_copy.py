# SPDX-License-Identifier: Apache-2.0
"""Samples come late from storage, and their batches go to the device from pageable memory."""

import stand_in_device
import torch
from late_files import LateFiles
from work import Samples


class Read:
    def __init__(self):
        self.files = LateFiles(6)

    def __call__(self, index):
        return torch.full((1 << 20,), int(self.files(index)), dtype=torch.uint8)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(600, Read()), batch_size=8, num_workers=2)
    whole = torch.zeros(32 << 20, dtype=torch.uint8)  # what a batch would be
    for _ in loader:
        whole.to("standin")
        stand_in_device.launch(2)
        stand_in_device.synchronize()
