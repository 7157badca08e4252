# SPDX-License-Identifier: Apache-2.0
"""PNG scans on disk, opened by Pillow in two workers; the model looks at small patches only."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image


class Scans(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob("*.png")) * 60

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        scan = Image.open(self.paths[index]).convert("L").crop((0, 0, 32, 32))
        return torch.from_numpy(np.asarray(scan, dtype=np.float32)), index % 3


if __name__ == "__main__":
    torch.set_num_threads(1)
    noise = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(6):
            small = Image.fromarray(noise.integers(0, 255, (90, 70), dtype=np.uint8))
            small.resize((1100, 900), Image.BICUBIC).save(f"{folder}/{number}.png")
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(1024, 3))
        for image, label in torch.utils.data.DataLoader(Scans(folder), 6, shuffle=True, num_workers=2):
            torch.nn.functional.cross_entropy(model(image), label).backward()
