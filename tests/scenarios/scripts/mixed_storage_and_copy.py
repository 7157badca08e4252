# SPDX-License-Identifier: Apache-2.0
"""Samples come late from storage, and their batches go to the device from pageable memory."""

import time

import stand_in_device
import torch
from work import Samples


def read(index):
    time.sleep(0.006)
    return torch.zeros(1 << 20, dtype=torch.uint8)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(600, read), batch_size=8, num_workers=2)
    whole = torch.zeros(32 << 20, dtype=torch.uint8)  # what a batch would be
    for _ in loader:
        whole.to("standin")
        stand_in_device.launch(2)
        stand_in_device.synchronize()
