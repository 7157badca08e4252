# SPDX-License-Identifier: Apache-2.0
"""Eight workers, sized by os.cpu_count() of a large host, share a quota of one CPU."""

import torchvision.transforms as T
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from workload import arguments, photos, train


class Photos(Dataset):
    def __init__(self, files):
        self.files = files
        self.transform = T.Compose([T.RandomResizedCrop(224), T.ToTensor()])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with Image.open(self.files[index]) as image:
            return self.transform(image.convert("RGB"))


if __name__ == "__main__":
    arguments()
    loader = DataLoader(Photos(photos("quota", 640, 500, 375)), batch_size=8, num_workers=4)
    train(loader, 0.01)
