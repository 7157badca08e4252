# SPDX-License-Identifier: Apache-2.0
"""Contrastive pairs: two views of each image from busy workers of Feedline's DataLoader; gradients over two batches,
and an evaluation after each epoch. The workers are only just fast enough for the encoder.
"""

import numpy as np
import torch
from planting import amount, planted

import feedline

WIDTH = 56 if planted("compute_bound") else 8


class Pairs(torch.utils.data.Dataset):
    def __init__(self, count):
        self.pictures = np.random.default_rng(3).integers(0, 255, (count, 72, 72, 3), dtype=np.uint8)

    def __len__(self):
        return len(self.pictures)

    def view(self, picture):
        x, y, flipped, gain = torch.rand(4).tolist()
        area = picture[int(y * 24) :, int(x * 24) :][:48, :48].astype(np.float32) / 255
        area = area[:, ::-1] if flipped < 0.5 else area
        blurred = (area + np.roll(area, 1, 0) + np.roll(area, 1, 1) + np.roll(area, -1, 0)) / 4
        grey = blurred.mean(2, keepdims=True)
        area = np.clip((blurred - grey) * (0.5 + gain) + grey, 0, 1)
        return torch.from_numpy(area.transpose(2, 0, 1).copy())

    def __getitem__(self, index):
        return self.view(self.pictures[index]), self.view(self.pictures[index])


def encoder():
    conv, relu = torch.nn.Conv2d, torch.nn.ReLU
    return torch.nn.Sequential(
        conv(3, WIDTH, 5, 2), relu(), conv(WIDTH, WIDTH, 3), relu(), conv(WIDTH, WIDTH, 3, 2), relu(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(WIDTH, 32),
    )  # fmt: skip


def contrast(one, other):
    one, other = (torch.nn.functional.normalize(view) for view in (one, other))
    return torch.nn.functional.cross_entropy(one @ other.T / 0.2, torch.arange(len(one)))


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        losses = [contrast(model(one), model(other)) for one, other in loader]
    model.train()
    return torch.stack(losses).mean().item()


if __name__ == "__main__":
    torch.set_num_threads(1)
    held = feedline.DataLoader(Pairs(96), batch_size=32)
    settings = {"shuffle": True, "num_workers": 2, "persistent_workers": True}
    train = feedline.DataLoader(Pairs(32 * amount(34, 2)), batch_size=32, **settings)
    model = encoder()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _epoch in range(2):
        for number, (one, other) in enumerate(train):
            (contrast(model(one), model(other)) / 2).backward()
            if number % 2:
                optimizer.step()
                optimizer.zero_grad()
        print(f"held-out loss {evaluate(model, held):.3f}")
