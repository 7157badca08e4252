# SPDX-License-Identifier: Apache-2.0
"""Image and mask are PNG files of 1 megapixels; inflating them takes all CPUs."""

import os

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from workload import arguments, photos, train


class Pairs(Dataset):
    def __init__(self, files, raw):
        self.files = files
        self.raw = [np.array(Image.open(file))[:128, :128] for file in files[:4]] if raw else None

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        if self.raw:
            return torch.from_numpy(self.raw[index % 4])
        with Image.open(self.files[index]) as image:
            image.load()
            return torch.from_numpy(np.asarray(image.crop((0, 0, 128, 128))).copy())


if __name__ == "__main__":
    args = arguments()
    files = photos("png", 160, 1200, 900, "PNG", distinct=4)
    loader = DataLoader(Pairs(files, args.fixed), batch_size=4, num_workers=len(os.sched_getaffinity(0)))
    train(loader, 0.02)
