# SPDX-License-Identifier: Apache-2.0
"""Every prediction is looked at by itself."""

import torch
from work import Samples, enough, mended

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(enough(800), torch.tensor), batch_size=8, num_workers=1)
    hits = 0
    for batch in loader:
        scores = torch.sin(batch.repeat(250).float())
        if mended("loop_synchronisation"):
            hits += (scores > 0.5).sum().item()
            continue
        for i in range(len(scores)):
            hits += scores[i].item() > 0.5
