# SPDX-License-Identifier: Apache-2.0
"""Options of Dataset.loader(), drawn, and the rows that an epoch must have under them."""

from __future__ import annotations

import collections
import math
import random
from typing import Any

from .sources import DAMAGED, Source

Options = dict[str, Any]


def draw(rng: random.Random, source: Source) -> Options:
    options: Options = {"batch_size": rng.choice((1, 2, 3, 4, 5, 7, 8, 22, 23, 24, 64, 10**9))}
    choices: dict[str, tuple[float, tuple[Any, ...]]] = {
        "shuffle": (0.6, (True, True, False, "shards") if source.in_shards else (True, False)),
        "shuffle_window": (0.2, (1, 2, 3, 16, 1000)),
        "seed": (0.3, (0, 1, 12345, 2**64 - 1)),
        "drop_last": (0.25, (True, False)),
        "num_workers": (0.6, (0, 1, 2, 3, 5, "auto")),
        "memory_budget": (0.2, (5_000, 100_000, "1 MB", "64 MB")),
        "in_order": (0.15, (False, True)),
        "on_error": (1.0 if source.damaged else 0.2, ("skip", "replace", "raise")),
        "error_budget": (0.05, (0, 1, 5)),
        "uneven": (0.2, ("pad", "drop", "exact")),
        "epochs": (0.2, (1, 2, 3, math.inf)),
        "output": (0.7, ("numpy", "numpy", "torch", "dlpack", "tv_tensors")),
        "dtype": (0.1, ("float32", "float16", "uint8", "bfloat16")),
        "layout": (0.1, ("NHWC", "NCHW")),
        "timeout": (0.1, (30, 60.0)),
        "repeat": (0.1, (1, 2, 3, 40)),
        "device": (0.05, (None, "cpu")),
    }
    for name, (probability, values) in choices.items():
        if rng.random() < probability:
            options[name] = rng.choice(values)
    if source.images and rng.random() < 0.12:
        options |= {rng.choice(("mixup", "cutmix")): rng.choice((0.2, 1.0)), "num_classes": 23}
        options |= {"mix_mode": rng.choice(("batch", "elem", "pair", "half"))}
        if rng.random() < 0.3:
            options["partner"] = rng.choice(("roll", "flip"))
    if source.lengths and rng.random() < 0.4:
        options["buckets"] = rng.choice((1, 2, 3, [4, 8], [2, 3, 7]))
        if rng.random() < 0.4:
            options["max_tokens"] = rng.choice((7, 8, 20, 100))
            options["batch_size"] = rng.choice((None, 2, 4))
    return options


def others(options: Options, rng: random.Random) -> Options:
    """Options that must not change any batch."""
    changed = {**options, "num_workers": rng.choice((1, 2, 3, 4))}
    if "memory_budget" in options and rng.random() < 0.5:
        del changed["memory_budget"]
    return changed


def mixes(options: Options) -> bool:
    return bool(options.get("mixup") or options.get("cutmix"))


def wrong_rows(source: Source, options: Options, ids: list[int], got: list[int]) -> str:
    """The fault in the rows of one epoch on a single rank; empty if there is none.

    `ids`: those of the dataset's samples, in order.
    """
    batch_size = options.get("batch_size")
    sound = [one for one in ids if not (source.damaged and one == DAMAGED)]
    if not source.every:
        return "" if set(got) <= set(ids) else "rows of no sample"
    if source.damaged and options.get("on_error", "raise") != "skip":
        return ""
    if options.get("repeat", 1) > 1 or options.get("mix_mode") == "half" or "max_tokens" in options:
        return "" if set(got) <= set(ids) else "rows of no sample"
    if options.get("drop_last"):
        count = len(sound) // batch_size * batch_size
        if "buckets" not in options and len(got) != count:
            return f"{len(got)} rows and not {count}"
        extra = collections.Counter(got) - collections.Counter(sound)
        return f"rows twice: {dict(extra)}" if extra else ""
    if collections.Counter(got) != collections.Counter(sound):
        lost = collections.Counter(sound) - collections.Counter(got)
        extra = collections.Counter(got) - collections.Counter(sound)
        return f"lost {dict(lost)}, repeated {dict(extra)}"
    in_order = (
        options.get("in_order", True) and "buckets" not in options and not source.damaged
    )  # refilled from the end
    if not options.get("shuffle") and in_order and got != sound:
        return f"in another order: {got}"
    return ""
