# SPDX-License-Identifier: Apache-2.0
"""Draws chains of operations as names and arguments, so that a case can be serialised."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import feedline

from .sources import Source, first_label

Step = tuple[str, dict[str, Any]]

KEEP_COLOUR: list[Step] = [
    ("random_horizontal_flip", {}),
    ("random_vertical_flip", {"p": 0.3}),
    ("resize", {"size": 12}),
    ("resize_keep_ratio", {"size": 14}),
    ("random_resized_crop", {"size": 10}),
    ("center_crop", {"size": 9}),
    ("decode", {}),
]
SIZES: list[Step] = [
    ("resize", {"size": (8, 8)}),
    ("random_resized_crop", {"size": 8}),
    ("center_crop", {"size": 8}),
    ("random_crop", {"size": (8, 8)}),
]
CHANGE_COLOUR: list[Step] = [
    ("color_jitter", {"brightness": 0.3, "hue": 0.1}),
    ("grayscale", {"num_output_channels": 3}),
    ("random_invert", {}),
    ("random_solarize", {"threshold": 100}),
    ("random_erasing", {}),
    ("pad", {"padding": 2}),
    ("gaussian_blur", {"kernel_size": 3}),
    ("rand_augment", {}),
    ("trivial_augment_wide", {}),
    ("aug_mix", {}),
    ("random_rotation", {"degrees": 20}),
    ("random_affine", {"degrees": 10}),
    ("random_perspective", {}),
    ("normalize", {"mean": feedline.IMAGENET_MEAN, "std": feedline.IMAGENET_STD}),
    ("to_dtype", {"dtype": "float32", "scale": True}),
    ("to_dtype", {"dtype": "float16", "scale": True}),
]
OF_BOXES: list[Step] = [
    ("random_photometric_distort", {}),
    ("random_zoom_out", {"side_range": (1, 2)}),
    ("random_iou_crop", {}),
    ("scale_jitter", {"target_size": (20, 20)}),
    ("random_short_side", {"min_size": (12, 16), "max_size": 40}),
]
_NEVER_CHANGED = {name for name, _ in (*KEEP_COLOUR, *SIZES)} | {"cache", "map", "collate", "sanitize_bounding_boxes"}


def same(value: Any) -> Any:
    return value


def slow(value: Any) -> Any:
    time.sleep(0.0005)
    return value


FUNCTIONS = {"same": same, "slow": slow}


def draw(rng: random.Random, source: Source) -> list[Step]:
    steps = _annotated(rng, source) if source.boxes else _plain(rng, source)
    if rng.random() < 0.15 and not (steps and steps[-1][0] == "collate" and source.images):
        field = rng.choice((source.per_box or ("label",)) + ("image" if source.images else "x",))
        processes = rng.choice((0,) * 12 + (1, 2))
        steps.append(("map", {"fn": rng.choice(list(FUNCTIONS)), "fields": field, "processes": processes}))
        # a function's arrays have one shape unless the chain says otherwise
        varies = field == "image" and bool(source.boxes) and not any(step in SIZES for step in steps)
        if varies or field in source.per_box:
            steps.append(("collate", {"form": "list", "fields": field}))
    return steps


def _annotated(rng: random.Random, source: Source) -> list[Step]:
    steps = rng.sample(KEEP_COLOUR, rng.choice((0, 1, 2)))
    if rng.random() < 0.5:
        steps += rng.sample(OF_BOXES, rng.choice((1, 2)))
    if rng.random() < 0.2:
        steps += rng.sample(CHANGE_COLOUR, 1)
    if rng.random() < 0.8:
        # images may be smaller than a random crop after a crop or a resize of random size
        random_size = {name for name, _ in steps} & {"random_iou_crop", "scale_jitter", "random_short_side"}
        steps.append(rng.choice([one for one in SIZES if one[0] != "random_crop" or not random_size]))
    # it may remove all labels, by which samples are identified
    if rng.random() < 0.5 and source.identify is not first_label:
        steps.append(("sanitize_bounding_boxes", {"labels": source.per_box or None}))
    if rng.random() < 0.2:
        steps.append(("collate", {"form": "pad", "fields": source.boxes}))
    return steps


def _plain(rng: random.Random, source: Source) -> list[Step]:
    steps: list[Step] = []
    if source.images:
        if rng.random() < 0.12:
            return [("collate", {"form": "list"})]
        steps += rng.sample(KEEP_COLOUR, rng.choice((0, 0, 1, 2)))
        if rng.random() < 0.15:
            steps.append(("cache", {"where": rng.choice(("memory", "file")), "budget": rng.choice((None, "1 MB"))}))
        steps.append(rng.choice(SIZES))
        steps += rng.sample(CHANGE_COLOUR, rng.choice((0, 0, 1, 2)))
        if rng.random() < 0.05:
            crops = [("five_crop", {"size": 8}), ("ten_crop", {"size": 8})]
            steps = [("resize", {"size": 12}), rng.choice(crops)]
        elif rng.random() < 0.08:
            steps = [("views", {"views": rng.choice((1, 2, 5)), "local": rng.choice((1, 3))})]
    elif source.variable:
        steps.append(("collate", {"form": rng.choice(("list", "pad")), "fields": source.variable}))
    return steps


def keep_colour(steps: list[Step]) -> bool:
    return all(name in _NEVER_CHANGED for name, _ in steps)


def applied(dataset: feedline.Dataset, steps: list[Step], scratch: Path) -> feedline.Dataset:
    for name, arguments in steps:
        if name == "map":
            arguments = {**arguments, "fn": FUNCTIONS[arguments["fn"]]}
        if name == "views":
            big = feedline.chain().random_resized_crop(8).random_horizontal_flip()
            small = (feedline.chain().random_resized_crop(4), arguments["local"])
            dataset = dataset.views(image=(big, arguments["views"]), local=small)
            continue
        if arguments.get("where") == "file":
            arguments = {**arguments, "where": scratch / "cached.pixels"}
        dataset = getattr(dataset, name)(**arguments)
    return dataset
