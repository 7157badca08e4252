# SPDX-License-Identifier: Apache-2.0
"""A folder of images that the drop-in loader reads natively: decoding is most of it."""

from photos import photos
from torchvision import transforms
from torchvision.datasets import ImageFolder
from work import enough, gpu_step, mended

import feedline

TRANSFORM = transforms.Compose([transforms.Resize((64, 64)), transforms.ToTensor()])

if __name__ == "__main__":
    folder = photos(64, 64 if mended("cpu_decode") else 1024)
    loader = feedline.DataLoader(ImageFolder(folder, TRANSFORM), batch_size=8, num_workers=2, lower="require")
    for _epoch in range(enough(14)):
        for _batch in loader:
            gpu_step(1)
