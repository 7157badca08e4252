# SPDX-License-Identifier: Apache-2.0
"""A loader of a loader: workers of the inner one read documents, and the outer one, which has none, packs them into
rows of equal length, token by token, in the training loop's own process.
"""

import numpy as np
import torch
from planting import amount, planted

ROW, BATCH, VOCABULARY = 512, 16, 600


class Documents(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = np.random.default_rng(index)
        return torch.from_numpy(draw.integers(2, VOCABULARY, draw.integers(40, 900)))


class Packed(torch.utils.data.IterableDataset):
    """Yields rows of the tokens of consecutive documents, and for each token how far back its document begins."""

    def __init__(self, documents):
        self.inner = torch.utils.data.DataLoader(documents, 8, shuffle=True, num_workers=1, collate_fn=list)

    def __iter__(self):
        if not planted("python_main_process"):
            yield from self.whole_arrays()
            return
        tokens, places = [], []
        for documents in self.inner:
            for document in documents:
                for position, token in enumerate(document.tolist()):
                    if token == 0:
                        continue
                    tokens.append(min(token, VOCABULARY - 1))
                    places.append(min(position, ROW - 1))
                    if len(tokens) == ROW:
                        yield torch.tensor(tokens), torch.tensor(places)
                        tokens, places = [], []

    def whole_arrays(self):
        tokens, places = torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long)
        for documents in self.inner:
            tokens = torch.cat([tokens, *documents])
            places = torch.cat([places, *(torch.arange(len(one)).clamp(max=ROW - 1) for one in documents)])
            while len(tokens) >= ROW:
                yield tokens[:ROW], places[:ROW]
                tokens, places = tokens[ROW:], places[ROW:]


if __name__ == "__main__":
    torch.set_num_threads(1)
    outer = torch.utils.data.DataLoader(Packed(Documents(amount(16_000, 200))), batch_size=BATCH)
    token, position = torch.nn.Embedding(VOCABULARY, 8), torch.nn.Embedding(ROW, 8)
    optimizer = torch.optim.SGD([*token.parameters(), *position.parameters()], 1e-2)
    for tokens, places in outer:
        optimizer.zero_grad()
        (token(tokens) + position(places)).square().mean().backward()
        optimizer.step()
