# SPDX-License-Identifier: Apache-2.0
"""Threads decode two images alternately if a batch has two rows for each thread: this does not change a row's
pixels.
"""

from __future__ import annotations

import random
from pathlib import Path

import made_data
import numpy as np
import pytest

import feedline

ROWS, BATCH = 120, 12


def _mixed_folder(root: Path) -> feedline.Dataset:
    """Photos of many sizes, in formats that are decoded alternately and in others; every eleventh is damaged."""
    rng = random.Random(20261122)
    (root / "all").mkdir(parents=True)
    for i in range(ROWS):
        pixels = made_data.photo(i, rng.randint(30, 400), rng.randint(30, 300))
        options: dict[str, object] = rng.choice(
            [
                {"quality": 95},
                {"quality": 60, "optimize": True},
                {"quality": 85, "subsampling": "4:4:4"},
                {"quality": 90, "restart_marker_blocks": 3},
                {"quality": 90, "progressive": True},
                {"format": "PNG"},
            ]
        )
        data = made_data.encoded(pixels, **options)  # type: ignore[arg-type]
        if i % 11 == 5:
            data = data[: rng.randint(1, len(data) - 1)]
        (root / "all" / f"{i:03}.jpg").write_bytes(data)
    return feedline.open(root).random_resized_crop(64).random_horizontal_flip().normalize((0.5,) * 3, (0.2,) * 3)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_rows_in_turn_are_rows_alone(tmp_path: Path, on_error: str) -> None:
    dataset = _mixed_folder(tmp_path / "train")

    def run(num_workers: int) -> tuple[list[np.ndarray], set[str]]:
        with dataset.loader(
            BATCH, shuffle=True, seed=1, epochs=2, num_workers=num_workers, output="numpy", on_error=on_error
        ) as loader:
            images = [np.array(image) for image, _ in loader]
            return images, {bad.message for bad in loader.errors}

    alone, damage = run(BATCH)  # one row per thread
    assert len(damage) > 5
    for num_workers in (1, 3):
        in_turn, same_damage = run(num_workers)
        assert len(in_turn) == len(alone)
        assert all(np.array_equal(a, b) for a, b in zip(in_turn, alone, strict=True))
        assert same_damage == damage
