# SPDX-License-Identifier: Apache-2.0
"""Photographs of 4 megapixels are decoded whole for an input of 128 x 128 pixels."""

import os

import torchvision.transforms as T
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from workload import arguments, photos, train


class Photos(Dataset):
    def __init__(self, files):
        self.files = files
        self.transform = T.Compose([T.CenterCrop(128), T.ToTensor()])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with Image.open(self.files[index]) as image:
            return self.transform(image.convert("RGB"))


if __name__ == "__main__":
    args = arguments()
    files = photos("shrunk", 120, 300, 200) if args.fixed else photos("large", 120, 2400, 1600)
    loader = DataLoader(Photos(files), batch_size=4, shuffle=True, num_workers=len(os.sched_getaffinity(0)))
    train(loader, 0.04)
