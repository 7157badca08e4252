# SPDX-License-Identifier: Apache-2.0
"""Feedline's global order cannot be distinguished from a random permutation, by statistics that detect other orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from feedline import _engine
from feedline.bench import shuffle_quality
from feedline.bench.shuffle_quality import Order

# sizes around powers of two and four, where a Feistel network changes its width or walks longest
SIZES = [100, 255, 256, 257, 1000, 1024, 4097, 50_000]
OF_ONE_ORDER = [
    shuffle_quality.rank_correlation,
    shuffle_quality.neighbours_kept,
    shuffle_quality.step_length,
    shuffle_quality.displacement,
]


def ours(size: int, seed: int, epoch: int, shard_ends: list[int] | None = None, window: int = 0) -> Order:
    order: Order = _engine.sample_order(
        samples=size, shard_ends=shard_ends or [], shuffle=True, shard_window=window, seed=seed, epoch=epoch,
        begin=0, count=size,
    )  # fmt: skip
    return order


def drawn(size: int, seed: int) -> Order:
    return np.random.default_rng((size, seed)).permutation(size)


def p_values(statistic: Callable[..., Any], orders: list[Order]) -> np.ndarray:
    return np.array([statistic(order).p_value for order in orders])


@pytest.mark.parametrize("statistic", OF_ONE_ORDER)
def test_the_statistics_pass_true_permutations_as_often_as_they_should(statistic: Callable[..., Any]) -> None:
    """Of 1,000 p-values, a tenth is below 0.1 and half are below 0.5; a count of pairs has few possible values, so
    fewer are.
    """
    below = p_values(statistic, [drawn(500, seed) for seed in range(1000)])
    counted = statistic is shuffle_quality.neighbours_kept
    # 0.1 +- three standard deviations of a binomial distribution
    assert (0.03 if counted else 0.07) < (below < 0.1).mean() < 0.13
    assert (0.25 if counted else 0.45) < (below < 0.5).mean() < 0.55
    assert below.min() > shuffle_quality.FAILS_BELOW


def test_uniformity_passes_true_permutations_as_often_as_it_should() -> None:
    below = np.array(
        [shuffle_quality.uniformity(drawn(12, 1000 * run + i) for i in range(300)).p_value for run in range(300)]
    )
    assert 0.05 < (below < 0.1).mean() < 0.15
    assert below.min() > shuffle_quality.FAILS_BELOW


BAD: dict[str, Callable[[int, int], Order]] = {
    "the identity": lambda size, seed: np.arange(size),
    "backwards": lambda size, seed: np.arange(size)[::-1].copy(),
    "begun elsewhere": lambda size, seed: np.roll(np.arange(size), 1 + 37 * seed),
    "a buffer": lambda size, seed: shuffle_quality.window_order(size, size // 10, seed),
    "every other one": lambda size, seed: np.arange(size) * 2 % (size + 1 - size % 2),
}


@pytest.mark.parametrize("name", BAD)
def test_the_statistics_fail_what_is_no_shuffle(name: str) -> None:
    size = 5000 if name != "every other one" else 4999
    order = BAD[name](size, 1)
    assert sorted(order) == list(range(size))
    failed = {statistic.__name__ for statistic in OF_ONE_ORDER if not statistic(order).passed}
    assert "step_length" in failed
    if name != "every other one":
        assert failed >= {"neighbours_kept", "rank_correlation"}, failed


def test_uniformity_fails_a_buffer_and_what_is_too_even() -> None:
    buffer = shuffle_quality.uniformity(shuffle_quality.window_order(100, 10, seed) for seed in range(1000))
    turned = shuffle_quality.uniformity(np.roll(np.arange(100), turn) for turn in range(1000))
    assert buffer.value > 5 and not buffer.passed
    assert turned.value < 0.01 and not turned.passed, "rotations put everything everywhere equally often, which is odd"


def test_a_buffer_keeps_a_sample_within_its_reach() -> None:
    order = shuffle_quality.window_order(3000, 50, 1)
    assert sorted(order) == list(range(3000))
    assert (order < np.arange(3000) + 50).all(), "a sample cannot leave before it has entered"
    assert not np.array_equal(order, np.arange(3000))


@pytest.mark.parametrize("statistic", OF_ONE_ORDER)
def test_the_global_order_passes_at_every_size(statistic: Callable[..., Any], long_form: bool) -> None:
    seeds = 500 if long_form else 50
    below = p_values(statistic, [ours(size, seed, seed % 3) for size in SIZES for seed in range(seeds)])
    counted = statistic is shuffle_quality.neighbours_kept
    assert below.min() > shuffle_quality.FAILS_BELOW / 10, "the least of some hundreds to thousands"
    assert (0.02 if counted else 0.05) < (below < 0.1).mean() < 0.15


def test_epochs_and_seeds_have_nothing_to_do_with_each_other() -> None:
    pairs = [((0, epoch), (0, epoch + 1)) for epoch in range(100)] + [((s, 0), (s + 1, 0)) for s in range(100)]
    below = np.array([shuffle_quality.epoch_correlation(ours(999, *a), ours(999, *b)).p_value for a, b in pairs])
    assert below.min() > shuffle_quality.FAILS_BELOW
    assert 0.04 < (below < 0.1).mean() < 0.17


@pytest.mark.parametrize("size", [4, 10, 64, 65, 100])
def test_over_10_000_epochs_every_sample_is_everywhere_equally_often(size: int, long_form: bool) -> None:
    epochs = 200_000 if long_form else 10_000
    found = shuffle_quality.uniformity(ours(size, 11, epoch) for epoch in range(epochs))
    assert found.passed, found


def test_the_plan_by_shards_is_everywhere_equally_often_too_but_keeps_more_neighbours() -> None:
    """The documented limitation: samples of a group of shards stay together."""
    shards = [*range(5, 101, 5)]
    found = shuffle_quality.uniformity(ours(100, 11, epoch, shards, 3) for epoch in range(10_000))
    assert found.passed, found
    shards = [*range(100, 20_001, 100)]
    order = ours(20_000, 1, 0, shards, 4)
    measured = shuffle_quality.neighbours_kept(order)
    assert sorted(order) == list(range(20_000))
    assert not measured.passed
    assert measured.value < 3 * 2 / 400, "no more than in a shuffle of the 400 samples of a group"
