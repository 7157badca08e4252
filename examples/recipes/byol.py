# SPDX-License-Identifier: Apache-2.0
"""BYOL: two views with different chains; the second one is sometimes solarized."""

from __future__ import annotations

import shown

import feedline

BLUR = feedline.chain().gaussian_blur(23, sigma=(0.1, 2.0))
VIEW = (
    feedline.chain()
    .random_resized_crop(224, interpolation="bicubic")
    .random_horizontal_flip()
    .random_apply(feedline.chain().color_jitter(0.4, 0.4, 0.2, 0.1), p=0.8)
    .random_grayscale(0.2)
)


def train(dataset: feedline.Dataset) -> feedline.Dataset:
    """Returns a dataset of (online, target, label): float32 (batch, 3, 224, 224), normalised."""
    second = VIEW.random_apply(BLUR, p=0.1).random_solarize(128, p=0.2)
    views = dataset.views(online=VIEW.random_apply(BLUR, p=1.0), target=second)
    return views.normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)


if __name__ == "__main__":
    shown.main(train)
