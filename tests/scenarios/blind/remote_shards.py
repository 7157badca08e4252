# SPDX-License-Identifier: Apache-2.0
"""Token shards from slow storage, opened one after another by two workers; and a loop that calls .item() for every
prediction to count hits per class.
"""

import time

import torch
from planting import amount, planted

SHARDS, RECORDS, LENGTH, KINDS = 32, 128, 384, 20


def open_remote(shard):
    if planted("blocked_outside_files"):
        time.sleep(0.35)
    return torch.Generator().manual_seed(shard)


class Shards(torch.utils.data.IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        for shard in range(worker.id, amount(SHARDS, 2), worker.num_workers):
            content = open_remote(shard)
            for _ in range(RECORDS):
                yield torch.randint(0, KINDS, (LENGTH + 1,), generator=content)


def count_hits(hits, guess, wanted):
    if not planted("loop_synchronisation"):
        right = guess == wanted
        hits += torch.bincount(wanted[right], minlength=KINDS)
        return
    for position in range(len(guess)):
        if guess[position].item() == wanted[position].item():
            hits[wanted[position].item()] += 1


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Embedding(KINDS, 24), torch.nn.Linear(24, KINDS))
    optimizer = torch.optim.Adam(model.parameters())
    hits = torch.zeros(KINDS, dtype=torch.long)
    for tokens in torch.utils.data.DataLoader(Shards(), batch_size=16, num_workers=2):
        scores, wanted = model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(scores, wanted).backward()
        optimizer.step()
        count_hits(hits, scores.argmax(1), wanted)
    print(f"{hits.sum().item()} hits")
