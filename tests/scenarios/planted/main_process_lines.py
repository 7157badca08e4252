# SPDX-License-Identifier: Apache-2.0
"""A stream of JSON lines is parsed and tokenised in the main process."""

import json
import random

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
from workload import arguments, folder, train


class Lines(IterableDataset):
    def __init__(self, file):
        self.file = file

    def __iter__(self):
        info = get_worker_info()
        number, count = (info.id, info.num_workers) if info else (0, 1)
        with open(self.file) as lines:
            for i, line in enumerate(lines):
                if i // 32 % count != number:
                    continue
                words = json.loads(line)["text"].lower().split()
                tokens = [hash(word[:j]) % 30_000 for word in words for j in range(1, len(word) + 1)]
                yield torch.tensor((tokens + [0] * 512)[:512])


if __name__ == "__main__":
    args = arguments()
    path, new = folder("lines")
    if new:
        rng = random.Random(0)
        words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(3, 9))) for _ in range(2000)]
        with open(path / "corpus.jsonl", "w") as out:
            for _ in range(32 * 110):
                out.write(json.dumps({"text": " ".join(rng.choices(words, k=500))}) + "\n")
    loader = DataLoader(Lines(path / "corpus.jsonl"), batch_size=32, num_workers=args.workers or 0)
    train(loader, 0.04)
