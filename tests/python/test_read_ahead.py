# SPDX-License-Identifier: Apache-2.0
"""Slow storage delivers the same samples as fast storage, and faster than its latency would allow for sequential
reads.
"""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import feedline

LATENCY_US = 3000


@pytest.fixture
def photos(tmp_path):
    random = np.random.default_rng(0)
    for label in range(4):
        (tmp_path / f"class{label}").mkdir()
        for number in range(24):
            pixels = random.integers(0, 256, (16, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / f"class{label}" / f"{number}.png")
    return tmp_path


def batches(photos, epochs=2, **options):
    dataset = feedline.open(photos).random_crop(8)
    with dataset.loader(8, shuffle=True, seed=3, num_workers=2, output="numpy", **options) as loader:
        found = [[(image.copy(), label.copy()) for image, label in loader] for _ in range(epochs)]
        return found, loader.explain()


@pytest.mark.parametrize("mode", ["auto", "always", "threads", "never"])
def test_slow_storage_gives_the_same_batches(photos, force, mode):
    expected, explained = batches(photos)
    assert "artificially slow" not in explained
    force(read_latency=LATENCY_US / 1e6, read_ahead=mode)
    found, explained = batches(photos)
    for one, other in zip(found, expected, strict=True):
        for (image, label), (same_image, same_label) in zip(one, other, strict=True):
            np.testing.assert_array_equal(image, same_image)
            np.testing.assert_array_equal(label, same_label)
    assert f"artificially slow: {LATENCY_US} us per read" in explained
    assert ("at most" in explained) == (mode != "never"), explained


def test_a_damaged_photo_is_named_though_it_was_fetched_ahead(photos, force):
    (photos / "class2" / "7.png").write_bytes(b"no image")
    force(read_latency=LATENCY_US / 1e6)
    with feedline.open(photos).random_crop(8).loader(8, num_workers=2, on_error="skip", output="numpy") as loader:
        assert sum(len(label) for _, label in loader) == 95
        (error,) = loader.errors
        assert "class2/7.png" in str(error)


def test_a_samplers_order_is_fetched_ahead_in_the_memory_of_its_loader(photos, force):
    pytest.importorskip("torch")
    transforms = pytest.importorskip("torchvision.transforms")
    folder = pytest.importorskip("torchvision.datasets").ImageFolder(
        str(photos), transforms.Compose([transforms.CenterCrop(8), transforms.ToTensor()])
    )

    def run(memory_budget=None):
        loader = feedline.DataLoader(
            folder, 8, shuffle=True, num_workers=2, seed=5, lower="require", memory_budget=memory_budget
        )
        iterator = iter(loader)
        labels = [labels.tolist() for _, labels in iterator]
        return labels, iterator._pipeline.engine.explain()

    expected, _ = run()
    force(read_latency=LATENCY_US / 1e6)
    found, explained = run()
    assert found == expected
    assert "now, at most" in explained, explained
    found, explained = run(memory_budget=2 * 8 * 3 * 8 * 8 * 4 + 8192)
    assert found == expected
    assert "never, because batches leave no memory" in explained, explained
