# SPDX-License-Identifier: Apache-2.0
"""Thumbnails in folders by class, read cold from a disk that serves 500 requests a second."""

import io

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from workload import arguments, evict, folder, photo, train


class Thumbnails(Dataset):
    def __init__(self, files, contents):
        self.files = files
        self.contents = contents

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        data = self.contents[index] if self.contents else self.files[index].read_bytes()
        with Image.open(io.BytesIO(data)) as image:
            return torch.from_numpy(np.array(image))


if __name__ == "__main__":
    args = arguments()
    path, new = folder("thumbnails")
    files = [path / f"{i % 100:03}" / f"{i:05}.jpg" for i in range(3_000)]
    if new:
        contents = photo(24, 24)
        for i in range(100):
            (path / f"{i:03}").mkdir()
        for file in files:
            file.write_bytes(contents)
    evict(*files)
    contents = [photo(24, 24)] * len(files) if args.fixed else None
    loader = DataLoader(Thumbnails(files, contents), batch_size=64, shuffle=True, num_workers=2)
    train(loader, 0.005)
