# SPDX-License-Identifier: Apache-2.0
"""Log messages from gzipped JSON lines, split into tokens as they are read, by a single worker; a CPU stays free."""

import gzip
import json
import random
import re
import zlib

import torch
from planting import amount, planted, stored

WORD = re.compile(r"[a-z]+|\d|[^\sa-z\d]")
VOCABULARY, LENGTH = 4096, 600


def log(folder):
    draw = random.Random(9)
    words = ["".join(draw.choices("abcdefghijklmnop", k=draw.randrange(2, 9))) for _ in range(900)]
    for part in range(8):
        with gzip.open(folder / f"{part}.jsonl.gz", "wt") as file:
            for number in range(amount(1500, 60)):
                text = " ".join(draw.choices(words, k=260)) + f" took {draw.random():.6f} s"
                file.write(json.dumps({"level": number % 4, "host": f"h{number % 31}", "text": text}) + "\n")


def tokenise(text):
    """A token per word and one per three letters of it, as fastText has them."""
    tokens = []
    for word in WORD.findall(text):
        parts = [word, *(word[at : at + 3] for at in range(len(word) - 2))]
        tokens += [zlib.crc32(part.encode()) % VOCABULARY for part in parts]
    return tokens


class Events(torch.utils.data.IterableDataset):
    def __init__(self, folder):
        self.parts = sorted(folder.glob("*.jsonl.gz"))

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        for path in self.parts[worker.id :: worker.num_workers]:
            with gzip.open(path, "rt") as file:
                for line in file:
                    event = json.loads(line)
                    yield torch.tensor(tokenise(event["text"])[:LENGTH]), event["level"]


def seed_worker(worker):
    random.seed(torch.initial_seed() + worker)


if __name__ == "__main__":
    torch.set_num_threads(1)
    workers = 1 if planted("too_few_workers") else 2
    loader = torch.utils.data.DataLoader(
        Events(stored("events", log)), batch_size=24, num_workers=workers, timeout=90, worker_init_fn=seed_worker
    )
    embed, judge = torch.nn.Embedding(VOCABULARY, 16), torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD([*embed.parameters(), *judge.parameters()], 0.1)
    for tokens, level in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(judge(embed(tokens).mean(1)), level).backward()
        optimizer.step()
