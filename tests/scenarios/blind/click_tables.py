# SPDX-License-Identifier: Apache-2.0
"""A recommender: dicts of columns, sliced from tables in memory batch by batch, without workers; a wide model."""

import torch
from planting import amount, planted

ROWS, BATCH = 400_000, 1024
WIDTH = 512 if planted("compute_bound") else 16


class Clicks(torch.utils.data.Dataset):
    """Receives a list of rows; returns a dict of columns."""

    def __init__(self):
        draw = torch.Generator().manual_seed(7)
        self.columns = {
            "user": torch.randint(0, 20_000, (ROWS,), generator=draw),
            "item": torch.randint(0, 5_000, (ROWS,), generator=draw),
            "hour": torch.randint(0, 24, (ROWS,), generator=draw),
            "price": torch.rand(ROWS, generator=draw),
            "history": torch.randint(0, 5_000, (ROWS, 12), generator=draw),
            "clicked": torch.randint(0, 2, (ROWS,), generator=draw).float(),
        }

    def __len__(self):
        return ROWS

    def __getitem__(self, rows):
        return {name: column[rows] for name, column in self.columns.items()}


class TwoTowers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = torch.nn.Embedding(20_000, 32, sparse=True), torch.nn.Embedding(5_000, 32, sparse=True)
        layers = []
        for inside, outside in ((98, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)):
            layers += [torch.nn.Linear(inside, outside), torch.nn.ReLU()]
        self.mix = torch.nn.Sequential(*layers[:-1])

    def forward(self, batch):
        history = self.item(batch["history"]).mean(1)
        numbers = torch.stack([batch["price"], batch["hour"] / 24], 1)
        return self.mix(torch.cat([self.user(batch["user"]), self.item(batch["item"]), history, numbers], 1))


if __name__ == "__main__":
    torch.set_num_threads(1)
    clicks = Clicks()
    order = torch.utils.data.RandomSampler(clicks, num_samples=BATCH * amount(140, 6))
    batches = torch.utils.data.BatchSampler(order, BATCH, drop_last=True)
    model = TwoTowers()
    sparse = torch.optim.SparseAdam([*model.user.parameters(), *model.item.parameters()])
    dense = torch.optim.Adagrad(model.mix.parameters())
    for batch in torch.utils.data.DataLoader(clicks, sampler=batches, batch_size=None):
        sparse.zero_grad()
        dense.zero_grad()
        odds = model(batch).squeeze(1)
        torch.nn.functional.binary_cross_entropy_with_logits(odds, batch["clicked"]).backward()
        sparse.step()
        dense.step()
