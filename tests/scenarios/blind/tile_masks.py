# SPDX-License-Identifier: Apache-2.0
"""Segmentation of aerial tiles with masks: batches of 27 MB from two workers, and a slow network."""

import numpy as np
import torch
from planting import amount, planted, stored

SIDE, CLASSES = 160, 5
WIDTH = 20 if planted("compute_bound") else 2


def draw(folder):
    noise = np.random.default_rng(4)
    np.save(folder / "tiles.npy", noise.integers(0, 255, (60, SIDE + 32, SIDE + 32, 3), dtype=np.uint8))
    np.save(folder / "masks.npy", noise.integers(0, CLASSES, (60, SIDE + 32, SIDE + 32), dtype=np.uint8))


class Tiles(torch.utils.data.Dataset):
    def __init__(self, folder, count):
        self.tiles = np.load(folder / "tiles.npy", mmap_mode="r")
        self.masks = np.load(folder / "masks.npy", mmap_mode="r")
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        turn, x, y = (int(value) for value in torch.randint(0, 32, (3,)))
        area = np.s_[y : y + SIDE, x : x + SIDE]
        rows, columns = np.mgrid[:SIDE, :SIDE]
        bent = (rows + 6 * np.sin(columns / 20 + turn)).round().astype(int) % SIDE
        tile, mask = self.tiles[index % 60][area][bent, columns], self.masks[index % 60][area][bent, columns]
        tile = (tile.astype(np.float32) / 255 - 0.45) / 0.22
        return torch.from_numpy(tile.transpose(2, 0, 1).copy()), torch.from_numpy(mask.astype(np.int64))


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        conv = torch.nn.Conv2d
        self.down = torch.nn.Sequential(conv(3, WIDTH, 5, 2, 2), torch.nn.ReLU(), conv(WIDTH, WIDTH, 3, 2, 1))
        self.middle = torch.nn.Sequential(torch.nn.ReLU(), conv(WIDTH, WIDTH, 3, 1, 1), torch.nn.ReLU())
        self.up = torch.nn.Sequential(conv(WIDTH, CLASSES, 1), torch.nn.Upsample(scale_factor=4))

    def forward(self, tile):
        return self.up(self.middle(self.down(tile)))


if __name__ == "__main__":
    torch.set_num_threads(1)
    data = Tiles(stored("tiles", draw), amount(64 * 26, 128))
    loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True, num_workers=2, drop_last=True)
    model = Encoder()
    optimizer = torch.optim.SGD(model.parameters(), 1e-2, momentum=0.9)
    for tile, mask in loader:
        loss = torch.nn.functional.cross_entropy(model(tile), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
