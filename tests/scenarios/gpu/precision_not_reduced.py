# SPDX-License-Identifier: Apache-2.0
"""Everything is multiplied in float32, on a GPU with units for half precision, for some seconds."""

import loop
import torch

if __name__ == "__main__":
    weight, optimizer = loop.network(4096)
    for batch in loop.loader(torch.zeros(1024, dtype=torch.uint8).pin_memory()):
        batch.to("cuda", non_blocking=True)
        loop.step(weight, optimizer, turns=16)
        torch.cuda.synchronize()
