# SPDX-License-Identifier: Apache-2.0
"""Batches go to the device from pageable memory, before every step."""

import stand_in_device
import torch

if __name__ == "__main__":
    data = [torch.zeros(16 << 20, dtype=torch.uint8)] * 100
    for batch in torch.utils.data.DataLoader(data, batch_size=None, collate_fn=lambda sample: sample):
        batch.to("standin")
        stand_in_device.launch(4)
