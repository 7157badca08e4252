# SPDX-License-Identifier: Apache-2.0
"""Rows of a table as Python text, split and converted value by value in the training loop's own process."""

import torch

COLUMNS = 240
LINES = [",".join(f"{(row * 31 + column) % 97 / 7:.4f}" for column in range(COLUMNS)) for row in range(4000)]


class Table(torch.utils.data.Dataset):
    def __len__(self):
        return len(LINES)

    def __getitem__(self, index):
        row = {f"c{i}": float(value) for i, value in enumerate(LINES[index].split(","))}
        return torch.tensor([row[f"c{i}"] for i in range(COLUMNS - 1)]), row[f"c{COLUMNS - 1}"]


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(COLUMNS - 1, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for _epoch in range(3):
        for x, y in torch.utils.data.DataLoader(Table(), batch_size=64, shuffle=True):
            loss = (model(x).squeeze(1) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
