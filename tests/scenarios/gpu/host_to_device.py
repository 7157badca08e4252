# SPDX-License-Identifier: Apache-2.0
"""Copies are non-blocking from page-locked memory, and take most of the time of the compute stream."""

import loop
import torch

if __name__ == "__main__":
    weight, optimizer = loop.network(512)
    for batch in loop.loader(torch.zeros(loop.BATCH, dtype=torch.uint8).pin_memory()):
        batch.to("cuda", non_blocking=True)
        loop.step(weight, optimizer)
        torch.cuda.synchronize()
