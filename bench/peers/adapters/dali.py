# SPDX-License-Identifier: Apache-2.0
"""DALI on the CPU. Variants: fused (decodes only the crop), fused-no-antialias, full (decodes, then crops)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from work import MEAN, SHORTER, SIZE, STD, Work

DISTRIBUTIONS = ("nvidia-dali-cuda120", "torch", "numpy")
_AREA, _ASPECT = [0.08, 1.0], [3 / 4, 4 / 3]


@pipeline_def(device_id=None, seed=0, prefetch_queue_depth=2)
def _pipeline(work: Work) -> Any:
    encoded, label = fn.readers.file(file_root=work.folder, random_shuffle=work.train, name="reader")
    size: Any = {"size": (SIZE, SIZE), "interp_type": types.INTERP_LINEAR}
    if work.train and work.variant == "full":
        pixels = fn.random_resized_crop(
            fn.decoders.image(encoded), random_area=_AREA, random_aspect_ratio=_ASPECT, antialias=True, **size
        )
    elif work.train:
        region = fn.decoders.image_random_crop(encoded, random_area=_AREA, random_aspect_ratio=_ASPECT)
        pixels = fn.resize(region, antialias=work.variant != "fused-no-antialias", **size)
    else:
        whole = fn.decoders.image(encoded)
        pixels = fn.resize(whole, resize_shorter=SHORTER, interp_type=types.INTERP_LINEAR, antialias=True)
    scale = 255 if work.floating else 1
    return fn.crop_mirror_normalize(
        pixels,
        crop=(SIZE, SIZE),
        dtype=types.FLOAT if work.floating else types.UINT8,
        output_layout="CHW",
        mirror=fn.random.coin_flip() if work.train else 0,
        mean=[scale * value for value in MEAN] if work.floating else [0.0],
        std=[scale * value for value in STD] if work.floating else [1.0],
    ), label


def make(work: Work) -> Any:
    pipeline = _pipeline(work, batch_size=work.batch, num_threads=work.threads)
    loader = DALIGenericIterator(
        [pipeline], ["image", "label"], reader_name="reader", last_batch_policy=LastBatchPolicy.DROP, auto_reset=True
    )

    def epoch() -> Iterator[Any]:
        for (batch,) in loader:
            yield batch["image"]

    return epoch
