# SPDX-License-Identifier: Apache-2.0
"""LitData's StreamingDataset over chunks of photos in a bucket, decoded by Pillow in torch's workers, shuffled."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from typing import Any

import litdata
import torch
from litdata.streaming import downloader
from PIL import Image
from work import Work

from adapters import pillow

DISTRIBUTIONS = ("litdata", "torch", "pillow", "numpy")


class _Photos(litdata.StreamingDataset):  # type: ignore[misc]
    work: Work

    def __getitem__(self, index: Any) -> Any:
        sample = super().__getitem__(index)
        image = Image.open(io.BytesIO(sample["jpg"])).convert("RGB")
        return pillow.tensor(pillow.picture(image, self.work), self.work), sample["cls"]


def make(work: Work) -> Any:
    torch.set_num_threads(1)
    # its client requires these options for plain HTTP, regardless of the environment
    if work.source.startswith("s3:"):
        downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True
    cache = work.made_file("litdata-cache")
    shutil.rmtree(cache, ignore_errors=True)
    storage = {"endpoint_url": os.environ["AWS_ENDPOINT_URL"], "region_name": "us-east-1"}
    photos = _Photos(work.source, cache_dir=str(cache), shuffle=work.train, storage_options=storage)
    photos.work = work
    loader = litdata.StreamingDataLoader(
        photos, batch_size=work.batch, num_workers=work.threads, drop_last=True, persistent_workers=True
    )

    def epoch() -> Iterator[Any]:
        if work.variant == "cold":
            shutil.rmtree(cache, ignore_errors=True)
        for images, _labels in loader:
            yield images

    return epoch
