# SPDX-License-Identifier: Apache-2.0
"""A trainer that requests a new loader from its module in every epoch; its workers build an index before they begin."""

import torch


class Numbers(torch.utils.data.Dataset):
    index = None

    def __len__(self):
        return 96

    def __getitem__(self, number):
        return torch.full((8,), float(self.index[number]))


def build_index(_worker):
    words = sorted(str(number * 7919 % 100_003) for number in range(250_000))
    torch.utils.data.get_worker_info().dataset.index = [int(word) % 10 for word in words]


class Module:
    def __init__(self):
        self.model = torch.nn.Linear(8, 1)

    def train_dataloader(self):
        return torch.utils.data.DataLoader(Numbers(), 8, num_workers=1, worker_init_fn=build_index)

    def training_step(self, batch, _batch_index):
        return self.model(batch).square().mean()


class Trainer:
    def __init__(self, epochs):
        self.epochs = epochs

    def fit(self, module):
        optimizer = torch.optim.SGD(module.model.parameters(), 1e-4)
        for _epoch in range(self.epochs):
            for number, batch in enumerate(module.train_dataloader()):
                optimizer.zero_grad()
                module.training_step(batch, number).backward()
                optimizer.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    Trainer(6).fit(Module())
