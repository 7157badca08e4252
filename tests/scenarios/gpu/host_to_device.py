# SPDX-License-Identifier: Apache-2.0
"""Copies are asked for as they should be, and take most of the stream that computes."""

import loop
import torch

if __name__ == "__main__":
    weight, optimizer = loop.network(512)
    for batch in loop.loader(torch.zeros(loop.BATCH, dtype=torch.uint8).pin_memory()):
        batch.to("cuda", non_blocking=True)
        loop.step(weight, optimizer)
        torch.cuda.synchronize()
