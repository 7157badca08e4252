# SPDX-License-Identifier: Apache-2.0
"""Each sample carries thousands of Python objects: boxes and polygons as lists of dictionaries."""

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Annotated(Dataset):
    def __init__(self, as_tensors):
        self.as_tensors = as_tensors
        self.points = torch.arange(1500 * 4, dtype=torch.float64).reshape(-1, 4)
        self.objects = [
            {"box": (float(i), float(i + 1), float(i + 2), float(i + 3)), "label": f"thing-{i}", "crowd": False}
            for i in range(1500)
        ]

    def __len__(self):
        return 1600

    def __getitem__(self, index):
        image = torch.zeros(3, 16, 16)
        if self.as_tensors:
            return image, self.points
        return image, self.objects


def together(samples):
    images, targets = zip(*samples, strict=True)
    return torch.stack(images), torch.stack(targets) if isinstance(targets[0], torch.Tensor) else list(targets)


if __name__ == "__main__":
    args = arguments()

    # Copies, as a dataset that parses a file for each sample would make.
    class Fresh(Annotated):
        def __getitem__(self, index):
            image, target = super().__getitem__(index)
            if not self.as_tensors:
                target = [{**item, "box": tuple(v + index for v in item["box"])} for item in target]
            return image, target

    loader = DataLoader(Fresh(args.fixed), batch_size=16, num_workers=2, collate_fn=together)
    train(loader, 0.01)
