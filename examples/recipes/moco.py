# SPDX-License-Identifier: Apache-2.0
"""MoCo v2: a query and a key of each image, with the same chain."""

from __future__ import annotations

import shown

import feedline

VIEW = (
    feedline.chain()
    .random_resized_crop(224, scale=(0.2, 1.0))
    .random_apply(feedline.chain().color_jitter(0.4, 0.4, 0.4, 0.1), p=0.8)
    .random_grayscale(0.2)
    .random_apply(feedline.chain().gaussian_blur(23, sigma=(0.1, 2.0)), p=0.5)
    .random_horizontal_flip()
)


def train(dataset: feedline.Dataset) -> feedline.Dataset:
    """Returns a dataset of (query, key, label): float32 (batch, 3, 224, 224), normalised."""
    return dataset.views(query=VIEW, key=VIEW).normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)


if __name__ == "__main__":
    shown.main(train)
