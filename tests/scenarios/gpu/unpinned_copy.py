# SPDX-License-Identifier: Apache-2.0
"""Batches are copied to the GPU from pageable memory, before every step."""

import loop
import torch

if __name__ == "__main__":
    weight, optimizer = loop.network(512)
    for batch in loop.loader(torch.zeros(loop.BATCH, dtype=torch.uint8)):
        batch.to("cuda")
        loop.step(weight, optimizer)
