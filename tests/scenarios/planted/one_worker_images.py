# SPDX-License-Identifier: Apache-2.0
"""One worker decodes images and cannot keep up, while another CPU is idle."""

import torchvision.transforms as T
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from workload import arguments, photos, train


class Photos(Dataset):
    def __init__(self, files):
        self.files = files
        self.transform = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor()])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with Image.open(self.files[index]) as image:
            return self.transform(image.convert("RGB"))


if __name__ == "__main__":
    args = arguments()
    dataset = Photos(photos("one_worker", 800, 500, 375))
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=args.workers or 1)
    train(loader, 0.018)
