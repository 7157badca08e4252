# SPDX-License-Identifier: Apache-2.0
"""Grain with threads, and Pillow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grain
from PIL import Image
from work import Work

from adapters import pillow

DISTRIBUTIONS = ("grain", "pillow", "numpy")


def make(work: Work) -> Any:
    def sample(record: tuple[str, int], draw: Any) -> Any:
        with Image.open(record[0]) as image:
            changed = pillow.picture(image.convert("RGB"), work, draw)
        return pillow.array(changed, work), record[1]

    data = grain.MapDataset.source(list(zip(*work.files(), strict=True))).seed(0)
    if work.train:
        data = data.shuffle()
    options = grain.ReadOptions(num_threads=work.threads, prefetch_buffer_size=2 * work.batch)
    data = data.random_map(sample).to_iter_dataset(options).batch(work.batch, drop_remainder=True)

    def epoch() -> Iterator[Any]:
        for images, _labels in data:
            yield images

    return epoch
