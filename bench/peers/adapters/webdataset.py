# SPDX-License-Identifier: Apache-2.0
"""WebDataset over tars, decoded by Pillow in torch's workers, shuffled in a buffer of a thousand encoded images."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import torch
import webdataset
from PIL import Image
from work import Work

from adapters import pillow

DISTRIBUTIONS = ("webdataset", "torch", "pillow", "numpy")
_BUFFER = 1000


def make(work: Work) -> Any:
    torch.set_num_threads(1)

    def sample(fields: dict[str, Any]) -> tuple[Any, int]:
        image = Image.open(io.BytesIO(fields["jpg"])).convert("RGB")
        return pillow.tensor(pillow.picture(image, work), work), int(fields["cls"])

    pipeline = webdataset.WebDataset(work.tars, shardshuffle=100 if work.train else False, seed=0)
    if work.train:
        pipeline = pipeline.shuffle(_BUFFER)
    pipeline = pipeline.map(sample).batched(work.batch, partial=False)
    loader = webdataset.WebLoader(pipeline, batch_size=None, num_workers=work.threads, persistent_workers=True)

    def epoch() -> Iterator[Any]:
        for images, _labels in loader:
            yield images

    return epoch
