# SPDX-License-Identifier: Apache-2.0
"""DINOv2: two large crops and eight small ones."""

from __future__ import annotations

import shown

import feedline


def crop(size: int, low: float, high: float, blurred: float) -> feedline.Chain:
    """Returns the operations of a view: a crop of this range of areas, colour changes, blur with this probability."""
    return (
        feedline.chain()
        .random_resized_crop(size, scale=(low, high), interpolation="bicubic")
        .random_horizontal_flip()
        .random_apply(feedline.chain().color_jitter(0.4, 0.4, 0.2, 0.1), p=0.8)
        .random_grayscale(0.2)
        .random_apply(feedline.chain().gaussian_blur(9, sigma=(0.1, 2.0)), p=blurred)
    )


def train(dataset: feedline.Dataset) -> feedline.Dataset:
    """Returns (global_a, global_b, local, label): float32, twice (batch, 3, 224, 224), and (batch, 8, 3, 96, 96)."""
    views = dataset.views(
        global_a=crop(224, 0.32, 1.0, blurred=1.0),
        global_b=crop(224, 0.32, 1.0, blurred=0.1).random_solarize(128, p=0.2),
        local=(crop(96, 0.05, 0.32, blurred=0.5), 8),
    )
    return views.normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)


if __name__ == "__main__":
    shown.main(train)
