# SPDX-License-Identifier: Apache-2.0
"""Batches are page-locked, but the loop still waits for each copy."""

import loop
import torch

if __name__ == "__main__":
    weight, optimizer = loop.network(512)
    for batch in loop.loader(torch.zeros(loop.BATCH, dtype=torch.uint8).pin_memory()):
        batch.to("cuda")
        loop.step(weight, optimizer)
