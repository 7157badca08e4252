# SPDX-License-Identifier: Apache-2.0
"""SPDL: FFmpeg decodes the whole photo, its filters crop, resize (bilinear) and flip."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import spdl.io
from spdl.pipeline import PipelineBuilder
from work import MEAN, SHORTER, SIZE, STD, Work

from adapters import boxes

DISTRIBUTIONS = ("spdl", "spdl-core", "spdl-io", "numpy")
_SCALE = (1 / (255 * np.array(STD))).astype(np.float32)[:, None, None]
_SHIFT = (-np.array(MEAN) / np.array(STD)).astype(np.float32)[:, None, None]


def _filters(width: int, height: int, work: Work) -> str:
    if work.train:
        left, top, w, h = boxes.crop_box(width, height)
        flip = "hflip," if random.random() < 0.5 else ""
        return f"crop={w}:{h}:{left}:{top}:exact=1,scale={SIZE}:{SIZE}:flags=bilinear,{flip}format=pix_fmts=rgb24"
    scale = SHORTER / min(width, height)
    resized = f"scale={int(width * scale)}:{int(height * scale)}:flags=bilinear"
    return f"{resized},crop={SIZE}:{SIZE}:exact=1,format=pix_fmts=rgb24"


def make(work: Work) -> Any:
    paths, _labels = work.files()

    def decode(path: str) -> Any:
        packets = spdl.io.demux_image(path)
        codec = packets.codec
        return spdl.io.decode_packets(packets, filter_desc=_filters(codec.width, codec.height, work))

    def collate(frames: list[Any]) -> Any:
        pixels = spdl.io.to_numpy(spdl.io.convert_frames(frames)).transpose(0, 3, 1, 2)
        return pixels * _SCALE + _SHIFT if work.floating else np.ascontiguousarray(pixels)

    def epoch() -> Iterator[Any]:
        order = random.sample(paths, len(paths)) if work.train else paths
        pipeline = (
            PipelineBuilder()
            .add_source(order)
            .pipe(decode, concurrency=work.threads)
            .aggregate(work.batch, drop_last=True)
            .pipe(collate)
            .add_sink(4)
            .build(num_threads=work.threads)
        )
        with pipeline.auto_stop():
            yield from pipeline.get_iterator()

    return epoch
