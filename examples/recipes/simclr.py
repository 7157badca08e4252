# SPDX-License-Identifier: Apache-2.0
"""SimCLR: two views of each image, with the same chain."""

from __future__ import annotations

import shown

import feedline

VIEW = (
    feedline.chain()
    .random_resized_crop(224, scale=(0.08, 1.0), interpolation="bicubic")
    .random_horizontal_flip()
    .random_apply(feedline.chain().color_jitter(0.8, 0.8, 0.8, 0.2), p=0.8)
    .random_grayscale(0.2)
    .random_apply(feedline.chain().gaussian_blur(23, sigma=(0.1, 2.0)), p=0.5)
)


def train(dataset: feedline.Dataset) -> feedline.Dataset:
    """Returns a dataset of (image_0, image_1, label): float32 (batch, 3, 224, 224) in [0, 1], as in the paper."""
    return dataset.views([VIEW, VIEW]).to_dtype("float32", scale=True)


if __name__ == "__main__":
    shown.main(train)
