# SPDX-License-Identifier: Apache-2.0
"""num_workers="auto" of the drop-in if the engine's threads do all the work: threads adapt, batches do not change."""

from __future__ import annotations

import pytest
import stand_in_gpu
import stand_in_torchvision
import torch
from lowered import assert_same, plan_of

from feedline import DataLoader
from feedline.machine import limits


@pytest.fixture(scope="module")
def vision():
    with stand_in_torchvision.vision() as module:
        yield module


@pytest.fixture
def augmented(vision, folder):
    t = vision.transforms
    return vision.datasets.ImageFolder(
        folder, t.Compose([t.RandomResizedCrop(24), t.RandomHorizontalFlip(), t.ToTensor()])
    )


@pytest.mark.parametrize("seed", [None, 7])
def test_batches_do_not_depend_on_it(augmented, force, seed) -> None:
    force(random_threads=True)

    def epochs(workers):
        torch.manual_seed(3)
        loader = DataLoader(augmented, 4, shuffle=True, num_workers=workers, seed=seed)
        assert plan_of(loader) == "images"
        found = []
        for _ in range(2):
            iterator = iter(loader)
            found.append(list(iterator))
            del iterator
        return found

    assert_same(epochs("auto"), epochs(1))


def test_it_is_reported(augmented, force) -> None:
    force(random_threads=True)
    loader = DataLoader(augmented, 4, num_workers="auto")
    assert f"up to {limits.usable_cpus()} thread" in loader.explain()
    iterator = iter(loader)
    next(iterator)
    controller = loader.stats()["controller"]
    assert controller["changed"] >= 1
    assert 1 <= controller["threads"] <= controller["limit"] == limits.usable_cpus()
    given = DataLoader(augmented, 4, num_workers=2)
    other = iter(given)
    next(other)
    assert given.stats()["controller"] is None


def test_a_cpu_is_left_to_the_thread_that_feeds_the_gpu(augmented, monkeypatch, cuda_driver) -> None:
    gpu = stand_in_gpu.install(cuda_driver, monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    loader = DataLoader(augmented, 4, num_workers="auto", pin_memory=True)
    iterator = iter(loader)
    images, _ = next(iterator)
    assert gpu.copies_to_pin > 0 and images.shape == (4, 3, 24, 24)
    assert loader.stats()["controller"]["limit"] == max(1, limits.usable_cpus() - 1)
