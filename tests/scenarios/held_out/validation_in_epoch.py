# SPDX-License-Identifier: Apache-2.0
"""Training reads from a slow server; twice per epoch, the model is validated on data in memory."""

import threading
import time

import torch

HELD = torch.utils.data.TensorDataset(torch.randn(512, 32), torch.randint(0, 2, (512,)))


class Remote(torch.utils.data.Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, index):
        threading.Event().wait(0.009)
        return torch.randn(32), index % 2


def validate(model):
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum() for x, y in torch.utils.data.DataLoader(HELD, 128))


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Linear(32, 2)
    train = torch.utils.data.DataLoader(Remote(), 10, shuffle=True, num_workers=2, persistent_workers=True)
    for _epoch in range(2):
        for number, (x, y) in enumerate(train):
            torch.nn.functional.cross_entropy(model(x), y).backward()
            time.sleep(0.003)
            if number % 24 == 23:
                validate(model)
