# SPDX-License-Identifier: Apache-2.0
"""Small icons in Feedline's own loader, enlarged sixfold and recoloured by its two threads; a small classifier."""

import numpy as np
import torch
from PIL import Image
from planting import amount, planted, stored

import feedline


def draw(folder):
    noise = np.random.default_rng(8)
    for number in range(amount(160, 48)):
        path = folder / f"kind{number % 4}" / f"{number:04}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(noise.integers(0, 255, (48, 48, 3), dtype=np.uint8)).save(path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    icons = feedline.open(stored("icons", draw))
    if planted("cpu_transform"):
        icons = icons.resize((288, 288)).color_jitter(0.4, 0.4, 0.4, 0.1).random_crop(64)
    else:
        icons = icons.resize((64, 64))
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 48, 5, 2), torch.nn.ReLU(), torch.nn.Conv2d(48, 48, 3, 2), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(48, 4),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    with icons.loader(batch_size=16, shuffle=True, num_workers=2) as loader:
        for _epoch in range(amount(18, 1)):
            for picture, kind in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(picture.float() / 255), kind).backward()
                optimizer.step()
