# SPDX-License-Identifier: Apache-2.0
"""Copies are asked for as they should be, and take most of the stream that computes."""

import stand_in_device
import torch

if __name__ == "__main__":
    data = [torch.zeros(16 << 20, dtype=torch.uint8).pin_memory()] * 100
    for batch in torch.utils.data.DataLoader(data, batch_size=None, collate_fn=lambda sample: sample):
        batch.to("standin", non_blocking=True)
        stand_in_device.launch(4)
        stand_in_device.synchronize()
