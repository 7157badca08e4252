# SPDX-License-Identifier: Apache-2.0
"""``feedline bench --shuffle-quality``: the orders of Feedline beside a shuffle buffer's and true permutations."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import feedline
from feedline import _engine
from feedline.bench import shuffle_quality
from feedline.bench.shuffle_quality import Order
from feedline.cli.console import OUT, progress, table

SHARD_WINDOW = 16  # Dataset.loader's own default
BUFFER = 1000  # WebDataset's and tf.data's documents use such numbers
MADE_UP_SHARD = 1000
LEAST = 10
FEW, MANY_EPOCHS = 100, 10_000  # of the small set, in which every sample is followed through every position

Maker = Callable[[int, int], Order]  # seed, epoch -> an order


class Contender(NamedTuple):
    """A way to shuffle: of the whole data set, and of a small one with windows in the same proportion."""

    name: str
    whole: Maker
    small: Maker


def measure(source: str | None, samples: int | None, seed: int) -> dict[str, Any]:
    """Statistics of every contender's order of a source's samples, or of `samples` in made-up shards."""
    shard_ends: list[int]
    if source is not None:
        dataset = feedline.open(source)
        size, shard_ends = len(dataset), dataset._engine.shard_ends()
    else:
        assert samples is not None
        size, shard_ends = samples, [*range(MADE_UP_SHARD, samples, MADE_UP_SHARD), samples]
    if size < LEAST:
        raise feedline.ConfigError(f"--shuffle-quality: {size} samples say nothing about an order; it takes {LEAST}")
    found = contenders(size, shard_ends)
    result: dict[str, Any] = {"samples": size, "shards": len(shard_ends), "seed": seed, "orders": {}}
    with progress(len(found), "shuffling") as bar:
        for contender in found:
            result["orders"][contender.name] = _judge(contender, seed)
            bar.advance(bar.task_ids[0])
    return result


def contenders(size: int, shard_ends: list[int]) -> list[Contender]:
    """All that there are here: torch's only where it is installed, plans by shard only where there are several."""

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


_LEGEND = f"""\
position and sample, epoch and next epoch: rank correlations; 1 is the same order
adjacent kept: share of samples that follow a neighbour of the data set
step to next, distance moved: mean distances over the number of samples; quantiles over it
sample at position: chi-square over its freedom, {FEW} samples, {MANY_EPOCHS:,} epochs, windows in the same proportion
p: how often a perfect shuffle is as far off; red below {shuffle_quality.FAILS_BELOW:g}"""


def show(result: dict[str, Any]) -> None:
    """The table: a statistic a row, what a perfect shuffle gives, and every contender with its p-value."""
    orders = result["orders"]
    OUT.print(f"[bold]{result['samples']:,} samples in {result['shards']:,} shards[/], seed {result['seed']}")
    first = next(iter(orders.values()))
    rows = []
    for key, statistic in first["statistics"].items():
        cells = [_cell(order["statistics"][key]) for order in orders.values()]
        rows.append((statistic["name"], _number(statistic["expected"]), *cells))
    for place, quantile in enumerate(first["displacement_quantiles"]):
        values = [_number(order["displacement_quantiles"][place]["value"]) for order in orders.values()]
        rows.append((f"{quantile['share']:.0%} moved less", _number(quantile["expected"]), *values))
    table(("", "perfect", *orders), rows)
    OUT.print(_LEGEND)


def _cell(statistic: dict[str, Any]) -> str:
    p_value = statistic["p_value"]
    text = f"{_number(statistic['value'])}\np " + (f"{p_value:.2g}" if p_value > 1e-9 else "<1e-9")
    return text if statistic["passed"] else f"[red]{text}[/]"


def _number(value: float) -> str:
    if abs(value) >= 1:
        return f"{value:.5g}"
    return f"{value:.4f}" if abs(value) >= 0.001 or value == 0 else f"{value:.0e}"
