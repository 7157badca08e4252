# SPDX-License-Identifier: Apache-2.0
"""Two ranks share documents that are sorted by length: the second one parses the long half, and the first waits."""

import json
import os
import random

import torch
import torch.distributed as dist
from planting import amount, planted

RANK, RANKS = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
DRAW = random.Random(2)
DOCUMENTS = [
    json.dumps([{"speaker": turn % 2, "words": [DRAW.randrange(999) for _ in range(24)]} for turn in range(turns)])
    for turns in [6] * 60 + [110] * 60
]


class Talks(torch.utils.data.Dataset):
    def __init__(self, documents, count):
        self.documents, self.count = documents, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        counts = torch.zeros(1000)
        for turn in json.loads(self.documents[index % len(self.documents)]):
            for word in turn["words"]:
                counts[word] += 1
        return counts.log1p(), index % 2


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    half = len(DOCUMENTS) // RANKS
    mine = DOCUMENTS[RANK * half :][:half] if planted("straggling_rank") else DOCUMENTS[RANK::RANKS]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1000, 2))
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for counts, kind in torch.utils.data.DataLoader(Talks(mine, amount(960, 24)), batch_size=8):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(counts), kind).backward()
        optimizer.step()
    dist.destroy_process_group()
