# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader with persistent workers, and Pillow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from work import Work

from adapters import pillow

DISTRIBUTIONS = ("torch", "pillow", "numpy")


class Folder(Dataset[Any]):
    def __init__(self, work: Work) -> None:
        self.work = work
        self.paths, self.labels = work.files()

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        with Image.open(self.paths[index]) as image:
            changed = pillow.picture(image.convert("RGB"), self.work)
        return pillow.tensor(changed, self.work), self.labels[index]


def make(work: Work) -> Any:
    torch.set_num_threads(1)
    loader = DataLoader(
        Folder(work),
        work.batch,
        shuffle=work.train,
        drop_last=True,
        num_workers=work.threads,
        persistent_workers=True,
    )

    def epoch() -> Iterator[Any]:
        for images, _labels in loader:
            yield images

    return epoch
