# SPDX-License-Identifier: Apache-2.0
"""Replacements for the names that other libraries use for operations and methods of datasets."""

from __future__ import annotations

import re

_FLIP = "random_horizontal_flip(p)"
_FLIP_VERTICALLY = "random_vertical_flip(p)"
_BATCHES = "loader(batch_size)"
_SHUFFLED = "loader(batch_size, shuffle=True)"
_AHEAD = "loader(batch_size), which reads ahead"
_OUTPUT = 'loader(batch_size, output="torch")'
_TENSOR = 'normalize(mean, std) or to_dtype("float32", scale=True): images are arrays (channels, height, width)'
_FUNCTION = "map(function), or an operation such as resize(224)"
_RANKS = "loader(batch_size, rank=..., world_size=...); ranks of torchrun and Slurm are detected"

_INSTEAD = {
    "augment": "operations such as random_resized_crop(224), or rand_augment()",
    "batch": _BATCHES,
    "batched": _BATCHES,
    "blur": "gaussian_blur(kernel_size)",
    "colour_jitter": "color_jitter(brightness, contrast, saturation, hue)",
    "column_names": "schema",
    "columns": "schema",
    "cutmix": "loader(batch_size, cutmix=1.0)",
    "cutout": "random_erasing()",
    "decode_image": "decode()",
    "features": "schema",
    "flip": _FLIP,
    "hflip": _FLIP,
    "horizontal_flip": _FLIP,
    "interleave": _AHEAD,
    "iter": "loader(batch_size)",
    "mixup": "loader(batch_size, mixup=0.2)",
    "num_rows": "len(dataset)",
    "prefetch": _AHEAD,
    "random_hflip": _FLIP,
    "random_split": "split(0.9, seed=0)",
    "random_vflip": _FLIP_VERTICALLY,
    "rotate": "random_rotation(degrees)",
    "select": "subset(indices)",
    "set_format": _OUTPUT,
    "set_transform": _FUNCTION,
    "shard": _RANKS,
    "shuffle": _SHUFFLED,
    "skip": "dataset[n:]",
    "to_dataloader": _BATCHES,
    "to_image": _TENSOR,
    "to_pil_image": "show(), or PIL.Image.fromarray with one sample's image",
    "to_tensor": _TENSOR,
    "train_test_split": "split(0.9, seed=0)",
    "transform": _FUNCTION,
    "vertical_flip": _FLIP_VERTICALLY,
    "vflip": _FLIP_VERTICALLY,
    "with_format": _OUTPUT,
    "with_transform": _FUNCTION,
}


def advice(name: str, names: list[str]) -> str | None:
    """Returns the replacement for ``name``, or None if it is unknown. ``names`` are the dataset's own names."""
    snake_case = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    for one in (name, snake_case):
        if one in _INSTEAD:
            return _INSTEAD[one]
    return f"{snake_case}(...)" if snake_case in names else None
