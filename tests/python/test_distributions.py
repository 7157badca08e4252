# SPDX-License-Identifier: Apache-2.0
"""Crops, flips and jitter are distributed as torchvision's: 20,000 draws against an independent sampler, fixed seeds.

The sampler below follows the published rule (Szegedy et al. 2014, section 6, and torchvision's documentation), with
NumPy's generator. The seeds are fixed, so these tests do not fail by chance: a p-value under 1e-3 is a wrong rule.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import training

import feedline
from feedline.testing import draw_for_size

scipy_stats = pytest.importorskip("scipy.stats", reason="scipy, for the statistics, is not installed")

DRAWS = 20_000
SMALLEST_P = 1e-3


def crops_by_rule(
    rng: np.random.Generator,
    count: int,
    width: int,
    height: int,
    scale: tuple[float, float],
    ratio: tuple[float, float],
) -> np.ndarray:
    """Rows of left, top, width, height."""
    rows = np.empty((count, 4))
    for i in range(count):
        for _ in range(10):
            area = width * height * rng.uniform(*scale)
            aspect = math.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1])))
            w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < w <= width and 0 < h <= height:
                rows[i] = rng.integers(0, width - w + 1), rng.integers(0, height - h + 1), w, h
                break
        else:
            whole = width / height
            w, h = width, height
            if whole < ratio[0]:
                h = round(w / ratio[0])
            elif whole > ratio[1]:
                w = round(h * ratio[1])
            rows[i] = (width - w) // 2, (height - h) // 2, w, h
    return rows


def drawn(dataset: feedline.Dataset, name: str, width: int, height: int, seed: int = 5) -> np.ndarray:
    rows = [
        next(entry.values for entry in draw_for_size(dataset, height, width, i, seed=seed) if entry.name == name)
        for i in range(DRAWS)
    ]
    return np.array(rows)


@pytest.mark.parametrize("size", [(500, 375), (333, 500), (97, 64), (1200, 90)])
@pytest.mark.parametrize(
    ("scale", "ratio"), [((0.08, 1.0), (3 / 4, 4 / 3)), ((0.5, 0.6), (1.0, 1.0)), ((0.2, 1.0), (0.5, 2.0))]
)
def test_random_resized_crop(
    folder: str, size: tuple[int, int], scale: tuple[float, float], ratio: tuple[float, float]
) -> None:
    width, height = size
    ours = drawn(feedline.open(folder).random_resized_crop(32, scale=scale, ratio=ratio), "crop", width, height)
    rule = crops_by_rule(np.random.default_rng(11), DRAWS, width, height, scale, ratio)
    assert (ours[:, :2] >= 0).all()
    assert (ours[:, 0] + ours[:, 2] <= width).all()
    assert (ours[:, 1] + ours[:, 3] <= height).all()
    for column, name in enumerate(("left", "top", "width", "height")):
        p = scipy_stats.ks_2samp(ours[:, column], rule[:, column]).pvalue
        assert p > SMALLEST_P, f"{name}: p = {p}"
    # the joint distribution, by the area and the middle of the box
    for name, joint in (("area", lambda r: r[:, 2] * r[:, 3]), ("middle", lambda r: r[:, 0] + r[:, 2] / 2)):
        p = scipy_stats.ks_2samp(joint(ours), joint(rule)).pvalue
        assert p > SMALLEST_P, f"{name}: p = {p}"


@pytest.mark.parametrize("probability", [0.5, 0.1, 0.0, 1.0])
@pytest.mark.parametrize("operation", ["random_horizontal_flip", "random_vertical_flip"])
def test_flips(folder: str, operation: str, probability: float) -> None:
    dataset = getattr(feedline.open(folder).resize((8, 8)), operation)(probability)
    flips = int(drawn(dataset, "flip", 50, 50)[:, 0].sum())
    assert scipy_stats.binomtest(flips, DRAWS, probability).pvalue > SMALLEST_P


def test_random_crop(folder: str) -> None:
    ours = drawn(feedline.open(folder).random_crop(32), "crop", 41, 36)
    for column, values in ((0, 41 - 32 + 1), (1, 36 - 32 + 1)):
        counts = np.bincount(ours[:, column].astype(int), minlength=values)
        assert len(counts) == values
        assert scipy_stats.chisquare(counts).pvalue > SMALLEST_P


def test_color_jitter(folder: str) -> None:
    dataset = feedline.open(folder).resize((8, 8)).color_jitter(0.4, (0.5, 0.9), 2.0, 0.1)
    bounds = {"brightness": (0.6, 1.4), "contrast": (0.5, 0.9), "saturation": (0.0, 3.0), "hue": (-0.1, 0.1)}
    for name, (low, high) in bounds.items():
        values = drawn(dataset, name, 50, 50)[:, 0]
        assert scipy_stats.kstest(values, "uniform", (low, high - low)).pvalue > SMALLEST_P, name


def test_crop_and_flip_are_independent(folder: str) -> None:
    dataset = training(feedline.open(folder))
    crops, flips = drawn(dataset, "crop", 500, 375), drawn(dataset, "flip", 500, 375)[:, 0].astype(bool)
    assert scipy_stats.ks_2samp(crops[flips, 2], crops[~flips, 2]).pvalue > SMALLEST_P
    assert scipy_stats.ks_2samp(crops[flips, 0], crops[~flips, 0]).pvalue > SMALLEST_P


def test_neighbouring_samples_epochs_and_seeds_are_independent(folder: str) -> None:
    dataset = feedline.open(folder).random_resized_crop(32)

    def lefts(**where: int) -> np.ndarray:
        return np.array([draw_for_size(dataset, 375, 500, i, **where)[0].values[0] for i in range(5000)])

    base = lefts(seed=1, epoch=0)
    for other in (np.roll(base, 1), lefts(seed=1, epoch=1), lefts(seed=2, epoch=0)):
        assert scipy_stats.spearmanr(base, other).pvalue > SMALLEST_P


def test_every_permutation_of_a_small_set_is_as_likely(tmp_path: object, folder: str) -> None:
    """The order of an epoch: the first and the last position get every sample equally often."""
    dataset = feedline.open(folder).resize((4, 4))
    first, last = [], []
    for seed in range(420):
        with dataset.loader(7, shuffle=True, seed=seed, output="numpy", num_workers=1) as loader:
            orders: list[int] = []
            for _ in loader:
                orders += loader.last_samples
        assert sorted(orders) == list(range(21))
        first.append(orders[0])
        last.append(orders[-1])
    for position in (first, last):
        assert scipy_stats.chisquare(np.bincount(position, minlength=21)).pvalue > SMALLEST_P
