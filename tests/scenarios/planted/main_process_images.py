# SPDX-License-Identifier: Apache-2.0
"""Photographs are decoded and augmented in the main process, between steps."""

import torch
import torchvision.transforms as T
from PIL import Image
from workload import arguments, photos, train


class Photos(torch.utils.data.Dataset):
    def __init__(self, files):
        self.files = files
        self.transform = T.Compose(
            [T.RandomResizedCrop(160), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize([0.5] * 3, [0.25] * 3)]
        )

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with Image.open(self.files[index]) as image:
            return self.transform(image.convert("RGB")), index % 10


if __name__ == "__main__":
    args = arguments()
    dataset = Photos(photos("main_process", 640, 400, 300))
    loader = torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=True, num_workers=args.workers or 0)
    train(loader, 0.05)
