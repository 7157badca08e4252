# SPDX-License-Identifier: Apache-2.0
"""Small page-locked batches, and matrices in half precision: the GPU's copies are not a problem."""

import loop
import torch

if __name__ == "__main__":
    weight, optimizer = loop.network(4096)
    for batch in loop.loader(torch.zeros(1024, dtype=torch.uint8).pin_memory()):
        batch.to("cuda", non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loop.step(weight, optimizer, turns=8)
        torch.cuda.synchronize()
