# SPDX-License-Identifier: Apache-2.0
"""A convolutional model on a CPU that steps after every fourth micro-batch; one worker reads for it."""

import torch


class Patches(torch.utils.data.Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, index):
        return torch.full((3, 48, 48), index / 480), index % 10


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 24, 5), torch.nn.ReLU(), torch.nn.Conv2d(24, 32, 5, 2), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters())
    for number, (image, label) in enumerate(torch.utils.data.DataLoader(Patches(), 8, num_workers=1)):
        (torch.nn.functional.cross_entropy(model(image), label) / 4).backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
