# SPDX-License-Identifier: Apache-2.0
"""Warps and resizes are distributed as in torchvision: 20,000 draws are compared with an independent sampler, with
fixed seeds.
"""

from __future__ import annotations

import numpy as np
import pytest

import feedline
from feedline.testing import draw_for_size

stats = pytest.importorskip("scipy.stats", reason="scipy, for the statistics, is not installed")

DRAWS = 20_000
SMALLEST_P = 1e-3
HEIGHT, WIDTH = 75, 101


@pytest.fixture
def opened(folder: str) -> feedline.Dataset:
    return feedline.open(folder).collate("list", fields="image")


def _draws(dataset: feedline.Dataset) -> dict[str, np.ndarray]:
    """Returns the drawn values in rows, by name; a draw without effect has no row."""
    rows: dict[str, list[tuple[float, ...]]] = {}
    for i in range(DRAWS):
        for entry in draw_for_size(dataset, HEIGHT, WIDTH, i, seed=11):
            rows.setdefault(entry.name, []).append(entry.values)
    return {name: np.array(values) for name, values in rows.items()}


def _uniform(values: np.ndarray, low: float, high: float) -> None:
    assert values.min() >= low
    assert values.max() <= high
    assert stats.kstest(values, stats.uniform(low, high - low).cdf).pvalue > SMALLEST_P


def _frequencies(values: np.ndarray, wanted: dict[float, float]) -> None:
    """Chi-square over all possible values, with their probabilities."""
    assert set(np.unique(values)) <= set(wanted)
    seen = [int((values == value).sum()) for value in wanted]
    assert stats.chisquare(seen, [p * len(values) for p in wanted.values()]).pvalue > SMALLEST_P


def _rounded_uniform(most: float) -> dict[float, float]:
    """round() of uniform numbers up to `most` on both sides: the extreme values have a lower probability."""
    whole = round(most)
    cells = {float(i): (min(i + 0.5, most) - max(i - 0.5, -most)) / (2 * most) for i in range(-whole, whole + 1)}
    return {value: p for value, p in cells.items() if p > 0}


def _independent(a: np.ndarray, b: np.ndarray) -> None:
    assert stats.spearmanr(a, b).pvalue > SMALLEST_P


def test_random_rotation(opened: feedline.Dataset) -> None:
    _uniform(_draws(opened.random_rotation((-30, 75)))["angle"][:, 0], -30, 75)


def test_random_affine(opened: feedline.Dataset) -> None:
    drawn = _draws(opened.random_affine(25, (0.1, 0.37), (0.7, 1.9), (-8, 12, 3, 40)))
    _uniform(drawn["angle"][:, 0], -25, 25)
    _frequencies(drawn["translate"][:, 0], _rounded_uniform(0.1 * WIDTH))
    _frequencies(drawn["translate"][:, 1], _rounded_uniform(0.37 * HEIGHT))
    _uniform(drawn["scale"][:, 0], 0.7, 1.9)
    _uniform(drawn["shear"][:, 0], -8, 12)
    _uniform(drawn["shear"][:, 1], 3, 40)
    columns = [drawn["angle"][:, 0], *drawn["translate"].T, drawn["scale"][:, 0], *drawn["shear"].T]
    for i in range(1, len(columns)):
        _independent(columns[i - 1], columns[i])


def test_random_affine_draws_only_what_is_asked_for(opened: feedline.Dataset) -> None:
    drawn = _draws(opened.random_affine(0, shear=20))
    assert (drawn["angle"] == 0).all()
    assert (drawn["translate"] == 0).all()
    assert (drawn["scale"] == 1).all()
    assert (drawn["shear"][:, 1] == 0).all()
    _uniform(drawn["shear"][:, 0], -20, 20)


def test_random_perspective(opened: feedline.Dataset) -> None:
    drawn = _draws(opened.random_perspective(0.4, 0.3))
    ends = drawn["endpoints"]
    assert stats.binomtest(len(ends), DRAWS, 0.3).pvalue > SMALLEST_P
    corners = [0, 0, WIDTH - 1, 0, WIDTH - 1, HEIGHT - 1, 0, HEIGHT - 1]
    assert (drawn["startpoints"] == corners).all()
    most = int(0.4 * (WIDTH // 2)), int(0.4 * (HEIGHT // 2))
    for column, corner in enumerate(corners):
        inwards = np.abs(ends[:, column] - corner)
        assert (ends[:, column] >= 0).all()
        _frequencies(inwards, {float(i): 1 / (most[column % 2] + 1) for i in range(most[column % 2] + 1)})
        if column:
            _independent(ends[:, column - 1], ends[:, column])


def test_random_resize(opened: feedline.Dataset) -> None:
    heights = _draws(opened.random_resize(30, 61))["size"][:, 0]
    _frequencies(heights, {float(edge): 1 / 31 for edge in range(30, 61)})


def test_random_short_side(opened: feedline.Dataset) -> None:
    sizes = _draws(opened.random_short_side([15, 30, 60, 100], 81))["size"]
    _frequencies(sizes[:, 0], {15.0: 0.25, 30.0: 0.25, float(int(HEIGHT * (81 / WIDTH))): 0.5})


def test_resize_keep_ratio(opened: feedline.Dataset) -> None:
    drawn = _draws(opened.resize_keep_ratio(64, 0.0, "bilinear", 0.3, (0.5, 1.5), False, 0.6, (0.5, 2.0)))
    for name, p in (("scale", 0.3), ("aspect", 0.6)):
        assert stats.binomtest(int((drawn[name] != 1).sum()), DRAWS, p).pvalue > SMALLEST_P
    _uniform(drawn["scale"][drawn["scale"] != 1], 0.5, 1.5)
    _uniform(np.log(drawn["aspect"][drawn["aspect"] != 1]), np.log(0.5), np.log(2.0))
    _independent(drawn["scale"][:, 0], drawn["aspect"][:, 0])
    areas = _draws(
        opened.resize_keep_ratio(64, random_scale_prob=1.0, random_scale_range=(0.2, 1), random_scale_area=True)
    )
    _uniform(areas["scale"][:, 0] ** -2, 0.2 - 1e-9, 1 + 1e-9)


def test_random_crop_or_pad(opened: feedline.Dataset) -> None:
    """As in timm: any position if the image is larger, any share of the border if it is smaller."""
    drawn = _draws(opened.random_crop_or_pad((60, 111)))
    _frequencies(drawn["crop"][:, 1], {float(top): 1 / 16 for top in range(16)})
    _frequencies(drawn["padding"][:, 0], {float(left): 1 / 11 for left in range(11)})
    assert (drawn["padding"][:, 0] + drawn["padding"][:, 2] == 10).all()
    assert not drawn["padding"][:, [1, 3]].any() and not drawn["crop"][:, 0].any()
    _independent(drawn["crop"][:, 1], drawn["padding"][:, 0])


def test_scale_jitter(opened: feedline.Dataset) -> None:
    _uniform(_draws(opened.scale_jitter((90, 60), (0.2, 1.7)))["scale"][:, 0], 0.2 - 1e-7, 1.7 + 1e-7)


@pytest.mark.parametrize(
    "chain",
    [
        lambda d: d.resize(40, "random"),
        lambda d: d.random_rotation(9, "random"),
        lambda d: d.elastic_transform(interpolation="random"),
    ],
)
def test_interpolation_by_chance(opened: feedline.Dataset, chain: object) -> None:
    drawn = _draws(chain(opened))["interpolation"][:, 0]  # type: ignore[operator]
    _frequencies(drawn, {2.0: 0.5, 3.0: 0.5})


def test_elastic_noise_is_uniform_and_each_number_by_itself() -> None:
    noise = feedline.testing.elastic_displacement(100, 100, (100, 100), (0, 0), index=5, stream=0, seed=9)
    flat = noise.reshape(-1)
    _uniform(flat, -1, 1)
    _independent(flat[:-1], flat[1:])
    _independent(noise[0].reshape(-1), noise[1].reshape(-1))
