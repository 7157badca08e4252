# SPDX-License-Identifier: Apache-2.0
"""Batches are page-locked, and the host waits for their copies all the same."""

import stand_in_device
import torch

if __name__ == "__main__":
    data = [torch.zeros(16 << 20, dtype=torch.uint8).pin_memory()] * 100
    for batch in torch.utils.data.DataLoader(data, batch_size=None, collate_fn=lambda sample: sample):
        batch.to("standin")
        stand_in_device.launch(4)
