# SPDX-License-Identifier: Apache-2.0
"""Compares the sample orders of loaders with a shuffle buffer and with true permutations."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from feedline.data import sources
from feedline.errors import ConfigError

from .. import _engine
from . import shuffle_quality
from .shuffle_quality import Order

SHARD_WINDOW = 16  # Dataset.loader's own default
BUFFER = 1000  # the documentation of WebDataset and tf.data uses such numbers
MADE_UP_SHARD = 1000
LEAST = 10
FEW, MANY_EPOCHS = 100, 10_000  # orders of the small set, in which all positions of every sample are counted

Maker = Callable[[int, int], Order]  # seed, epoch -> an order


class Contender(NamedTuple):
    """A shuffling method, for the whole dataset and for a small dataset with a proportionally smaller window."""

    name: str
    whole: Maker
    small: Maker


def measure(
    source: str | None, samples: int | None, seed: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Any]:
    """Returns statistics of each method's sample order for a source, or for `samples` samples in hypothetical shards.

    `progress` is called as ``progress(done, total)`` with the number of methods.
    """
    shard_ends: list[int]
    if source is not None:
        dataset = sources.open(source)
        size, shard_ends = len(dataset), dataset._engine.block_ends()
    else:
        assert samples is not None
        size, shard_ends = samples, [*range(MADE_UP_SHARD, samples, MADE_UP_SHARD), samples]
    if size < LEAST:
        raise ConfigError(f"--shuffle-quality: {size} samples are too few to evaluate an order; pass at least {LEAST}")
    found = contenders(size, shard_ends)
    result: dict[str, Any] = {"samples": size, "shards": len(shard_ends), "seed": seed, "orders": {}}
    for done, contender in enumerate(found):
        progress(done, len(found))
        result["orders"][contender.name] = _judge(contender, seed)
    progress(len(found), len(found))
    return result


def contenders(size: int, shard_ends: list[int]) -> list[Contender]:
    """Returns all available methods: torch's only if torch is installed, shard shuffling only if there are several
    shards.
    """

    def keyed(count: int, ends: list[int], window: int) -> Maker:
        return lambda seed, epoch: _engine.sample_order(
            samples=count, shard_ends=ends, shuffle=True, shard_window=window, seed=seed, epoch=epoch,
            begin=0, count=count,
        )  # fmt: skip

    found = [Contender("Feedline global", keyed(size, [], 0), keyed(FEW, [], 0))]
    if len(shard_ends) > 1:
        few_shards = [*range(5, FEW + 1, 5)]
        window = max(1, round(SHARD_WINDOW * len(few_shards) / len(shard_ends)))
        found.append(
            Contender(
                "Feedline shards",
                keyed(size, shard_ends, SHARD_WINDOW),
                keyed(FEW, few_shards, window),
            )
        )
    small_buffer = max(2, round(FEW * BUFFER / size))
    found.append(
        Contender(
            f"buffer of {BUFFER:,}",
            lambda seed, epoch: shuffle_quality.window_order(size, BUFFER, hash((seed, epoch))),
            lambda seed, epoch: shuffle_quality.window_order(FEW, small_buffer, hash((seed, epoch))),
        )
    )
    found.append(Contender("NumPy", _numpy_order(size), _numpy_order(FEW)))
    if importlib.util.find_spec("torch") is not None:
        found.append(Contender("torch", _torch_order(size), _torch_order(FEW)))
    return found


def _numpy_order(size: int) -> Maker:
    return lambda seed, epoch: np.random.default_rng((seed, epoch)).permutation(size)


def _torch_order(size: int) -> Maker:
    import torch

    def order(seed: int, epoch: int) -> Order:
        generator = torch.Generator().manual_seed(seed * MANY_EPOCHS + epoch)
        result: Order = torch.randperm(size, generator=generator).numpy()
        return result

    return order


def _judge(contender: Contender, seed: int) -> dict[str, Any]:
    first, second = contender.whole(seed, 0), contender.whole(seed, 1)
    statistics = {
        "rank_correlation": shuffle_quality.rank_correlation(first),
        "epoch_correlation": shuffle_quality.epoch_correlation(first, second),
        "neighbours_kept": shuffle_quality.neighbours_kept(first),
        "step_length": shuffle_quality.step_length(first),
        "displacement": shuffle_quality.displacement(first),
        "uniformity": shuffle_quality.uniformity(contender.small(seed, epoch) for epoch in range(MANY_EPOCHS)),
    }
    return {
        "statistics": {key: {**value._asdict(), "passed": value.passed} for key, value in statistics.items()},
        "displacement_quantiles": [
            {"share": share, "value": value, "expected": expected}
            for share, value, expected in shuffle_quality.displacement_quantiles(first)
        ],
        "passed": all(statistic.passed for statistic in statistics.values()),
    }
