# SPDX-License-Identifier: Apache-2.0
"""One image in 48 is a panorama of 24 megapixels; the others are small."""

import torchvision.transforms as T
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from workload import arguments, photos, train


class Mixed(Dataset):
    def __init__(self, small, large):
        self.small, self.large = small, large
        self.transform = T.Compose([T.Resize((96, 96)), T.ToTensor()])

    def __len__(self):
        return 640

    def __getitem__(self, index):
        file = self.large if self.large and index % 48 == 5 else self.small[index % len(self.small)]
        with Image.open(file) as image:
            return self.transform(image.convert("RGB"))


if __name__ == "__main__":
    args = arguments()
    large = None if args.fixed else photos("panorama", 1, 6000, 4000)[0]
    loader = DataLoader(Mixed(photos("small", 64, 160, 120), large), batch_size=8, num_workers=2)
    train(loader, 0.02)
