# SPDX-License-Identifier: Apache-2.0
"""A folder of images that the drop-in loader reads natively: decoding is most of it."""

from photos import photos
from torchvision import transforms
from torchvision.datasets import ImageFolder
from work import gpu_step

import feedline

TRANSFORM = transforms.Compose([transforms.Resize((64, 64)), transforms.ToTensor()])

if __name__ == "__main__":
    loader = feedline.DataLoader(ImageFolder(photos(64, 1024), TRANSFORM), batch_size=8, num_workers=2, lower="require")
    for _epoch in range(14):
        for _batch in loader:
            gpu_step(1)
