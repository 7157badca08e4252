# SPDX-License-Identifier: Apache-2.0
"""A network trained with torch's DataLoader and one worker, which cannot keep up, for `feedline tune --ladder`."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        pixels = torch.randint(0, 256, (3, 256, 256), dtype=torch.uint8)
        return nn.functional.avg_pool2d(pixels.float(), 3, 1, 1)[:, 16:240, 16:240] / 255, index % 10


if __name__ == "__main__":
    network = nn.Sequential(nn.Conv2d(3, 64, 7, 4), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.Flatten(), nn.LazyLinear(10))
    network = network.to("cuda")
    network(torch.zeros(1, 3, 224, 224, device="cuda"))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    for images, labels in DataLoader(Photos(), batch_size=64, num_workers=1):
        loss = nn.functional.cross_entropy(network(images.to("cuda")), labels.to("cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
