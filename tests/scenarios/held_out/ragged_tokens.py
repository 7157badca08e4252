# SPDX-License-Identifier: Apache-2.0
"""Token lists of different lengths, padded value by value in collate."""

import random

import torch

WORDS = random.Random(5)
TEXTS = [[WORDS.randrange(30_000) for _ in range(WORDS.randrange(100, 1500))] for _ in range(2000)]


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return len(TEXTS)

    def __getitem__(self, index):
        return {"ids": TEXTS[index], "label": index % 2}


def pad(samples):
    longest = max(len(sample["ids"]) for sample in samples)
    ids, mask = [], []
    for sample in samples:
        row, seen = [], []
        for position in range(longest):
            inside = position < len(sample["ids"])
            row.append(sample["ids"][position] if inside else 0)
            seen.append(1.0 if inside else 0.0)
        ids.append(row)
        mask.append(seen)
    return torch.tensor(ids), torch.tensor(mask), torch.tensor([sample["label"] for sample in samples])


if __name__ == "__main__":
    torch.set_num_threads(1)
    embed = torch.nn.EmbeddingBag(30_000, 4, mode="sum")
    for _epoch in range(2):
        loader = torch.utils.data.DataLoader(Texts(), 32, shuffle=True, num_workers=2, collate_fn=pad)
        for ids, mask, _label in loader:
            embed(ids[:, :64], per_sample_weights=mask[:, :64]).sum().backward()
