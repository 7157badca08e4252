# SPDX-License-Identifier: Apache-2.0
"""MosaicML's StreamingDataset over shards of photos in a bucket, decoded by Pillow in torch's workers, shuffled."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2] / "remote" / "readers"))

import torchvision_stub  # noqa: F401

import streaming  # isort: skip
import torch
from PIL import Image
from work import Work

from adapters import pillow

DISTRIBUTIONS = ("mosaicml-streaming", "torch", "pillow", "numpy")


class _Photos(streaming.StreamingDataset):  # type: ignore[misc]
    work: Work

    def __getitem__(self, index: Any) -> Any:
        sample = super().__getitem__(index)
        image = Image.open(io.BytesIO(sample["jpg"])).convert("RGB")
        return pillow.tensor(pillow.picture(image, self.work), self.work), sample["cls"]


def make(work: Work) -> Any:
    torch.set_num_threads(1)
    streaming.base.util.clean_stale_shared_memory()
    local = work.made_file("mosaic-local")
    shutil.rmtree(local, ignore_errors=True)
    photos = _Photos(remote=work.source, local=str(local), shuffle=work.train, batch_size=work.batch)
    photos.work = work
    loader = torch.utils.data.DataLoader(
        photos, batch_size=work.batch, num_workers=work.threads, drop_last=True, persistent_workers=True
    )

    def epoch() -> Iterator[Any]:
        for images, _labels in loader:
            yield images

    return epoch
