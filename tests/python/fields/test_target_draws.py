# SPDX-License-Identifier: Apache-2.0
"""random_iou_crop, random_zoom_out and random_photometric_distort draw like torchvision v2: 20,000 draws of each are
compared with the original's. The seeds are fixed, so these tests do not fail by chance.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torchvision", reason="torchvision, whose rules these are, is not installed")
pytest.importorskip("scipy.stats", reason="scipy, for the statistics, is not installed")

import torch
from made_data import write_tar
from made_fields import npy
from made_targets import png
from scipy import stats
from torchvision import tv_tensors
from torchvision.transforms import v2

import feedline
from feedline.testing import draw_for_size

DRAWS = 20_000
OF_ORIGINAL = 4_000  # a draw takes milliseconds
SMALLEST_P = 1e-3
HEIGHT, WIDTH = 120, 90
BOXES = np.array([[5, 5, 40, 60], [30, 50, 85, 115], [60, 10, 70, 20]], dtype=np.float32)


def same(ours: Any, theirs: Any) -> None:
    assert stats.ks_2samp(ours, theirs).pvalue > SMALLEST_P


def same_share(ours: int, theirs: int, of_theirs: int) -> None:
    """Returns how often something was done."""
    table = [[ours, DRAWS - ours], [theirs, of_theirs - theirs]]
    assert stats.chi2_contingency(table).pvalue > SMALLEST_P


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> feedline.Dataset:
    path = tmp_path_factory.mktemp("draws") / "x.tar"
    image = png(np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8))
    write_tar(path, [("0.png", image), ("0.npy", npy(BOXES))])
    return feedline.open(path, fields=("png", "npy:boxes"))


def original(transform: Any, draws: int) -> list[dict[str, Any]]:
    torch.manual_seed(1)
    image = torch.zeros(3, HEIGHT, WIDTH, dtype=torch.uint8)
    boxes = tv_tensors.BoundingBoxes(torch.from_numpy(BOXES), format="XYXY", canvas_size=(HEIGHT, WIDTH))
    return [transform.make_params([image, boxes]) for _ in range(draws)]


def test_iou_crops(dataset: feedline.Dataset) -> None:
    data = dataset.random_iou_crop().collate("list")
    drawn = [data.draw(0, epoch=epoch) for epoch in range(DRAWS)]
    crops = np.array([entries[0].values for entries in drawn if entries])
    theirs = [params for params in original(v2.RandomIoUCrop(), OF_ORIGINAL) if params]
    same_share(len(crops), len(theirs), OF_ORIGINAL)
    for column, name in enumerate(("left", "top", "width", "height")):
        same(crops[:, column], [params[name] for params in theirs])
    areas = [params["width"] * params["height"] for params in theirs]
    same(crops[:, 2] * crops[:, 3], areas)


def test_zoom_out(dataset: feedline.Dataset) -> None:
    data = dataset.random_zoom_out(side_range=(1, 3), p=0.6).collate("list")
    drawn = [draw_for_size(data, HEIGHT, WIDTH, i) for i in range(DRAWS)]
    paddings = np.array([entries[0].values for entries in drawn if entries])
    assert stats.binomtest(len(paddings), DRAWS, 0.6).pvalue > SMALLEST_P
    theirs = np.array([params["padding"] for params in original(v2.RandomZoomOut(side_range=(1, 3)), DRAWS)])
    for column in range(4):
        same(paddings[:, column], theirs[:, column])
    same(paddings[:, 0] + paddings[:, 2], theirs[:, 0] + theirs[:, 2])


def test_photometric_distortion(dataset: feedline.Dataset) -> None:
    data = dataset.random_photometric_distort(p=0.4).collate("list")
    drawn = [
        {entry.name: entry.values for entry in draw_for_size(data, HEIGHT, WIDTH, i, seed=3)} for i in range(DRAWS)
    ]
    theirs = original(v2.RandomPhotometricDistort(p=0.4), DRAWS)
    for name in ("brightness", "contrast", "saturation", "hue"):
        ours = [values[name][0] for values in drawn if name in values]
        expected = [params[f"{name}_factor"] for params in theirs if params[f"{name}_factor"] is not None]
        same_share(len(ours), len(expected), DRAWS)
        same(ours, expected)
    permutations = Counter(values["permutation"] for values in drawn if "permutation" in values)
    expected = Counter(
        tuple(map(float, params["channel_permutation"]))
        for params in theirs
        if params["channel_permutation"] is not None
    )
    assert set(permutations) == set(expected)
    table = [[counts[key] for key in sorted(expected)] for counts in (permutations, expected)]
    assert stats.chi2_contingency(table).pvalue > SMALLEST_P
    both = [values for values in drawn if "contrast" in values]
    last = sum(values["order"] == (0, 2, 3, 1) for values in both)
    assert stats.binomtest(last, len(both), 0.5).pvalue > SMALLEST_P


def test_distorted_pixels_are_torchvisions(dataset: feedline.Dataset, tmp_path: Path) -> None:
    from PIL import Image

    pixels = np.random.default_rng(4).integers(0, 255, (20, 30, 3), dtype=np.uint8)
    write_tar(tmp_path / "x.tar", [("0.png", png(pixels))])
    data = feedline.open(tmp_path / "x.tar", fields="png").random_photometric_distort(hue=(-0.4, 0.4)).collate("list")
    image = Image.fromarray(pixels)
    for epoch in range(300):
        drawn = {entry.name: entry.values for entry in data.draw(0, epoch=epoch)}
        transform = v2.RandomPhotometricDistort()
        factors = {
            f"{name}_factor": drawn.get(name, (None,))[0] for name in ("brightness", "contrast", "saturation", "hue")
        }
        permutation = drawn.get("permutation")
        params = factors | {
            "contrast_before": drawn.get("order") != (0, 2, 3, 1),
            "channel_permutation": None if permutation is None else torch.tensor([int(c) for c in permutation]),
        }
        expected = np.asarray(transform.transform(image, params)).transpose(2, 0, 1)
        assert np.array_equal(data.sample(0, epoch=epoch)[0], expected)
