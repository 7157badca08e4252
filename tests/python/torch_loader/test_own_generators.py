# SPDX-License-Identifier: Apache-2.0
"""seed= and transforms with their own random generators: seeded for each sample, or reported."""

from __future__ import annotations

import functools
import logging
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, Subset

import feedline

SAMPLES = 12


class Albumentations:
    """The documented methods of Albumentations."""

    def __init__(self) -> None:
        self.set_random_state(np.random.default_rng(137), random.Random(137))

    def set_random_state(self, random_generator: np.random.Generator, py_random: random.Random) -> None:
        self.draws, self.more = random_generator, py_random

    def set_random_seed(self, seed: int) -> None:
        raise AssertionError("adds the worker's seed")

    def __call__(self, value: float) -> float:
        return value + self.draws.random() + self.more.random()


class Monai:
    def __init__(self) -> None:
        self.R = np.random.RandomState(137)

    def set_random_state(self, seed: int | None = None, state: Any = None) -> Monai:
        self.R = np.random.RandomState(seed)
        return self

    def __call__(self, value: float) -> float:
        return value + float(self.R.uniform())


class Seeded:
    def __init__(self) -> None:
        self.draws = random.Random(137)

    def set_random_seed(self, seed: int) -> None:
        self.draws.seed(seed)

    def __call__(self, value: float) -> float:
        return value + self.draws.random()


class Imgaug(Seeded):
    set_random_seed = property(lambda self: None)  # type: ignore[assignment]
    seed_ = Seeded.set_random_seed


Imgaug.__module__ = "imgaug.augmenters.meta"


class Raw:
    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def __call__(self, value: float) -> float:
        if isinstance(self.generator, torch.Generator):
            return value + float(torch.rand((), generator=self.generator))
        return value + float(self.generator.random())


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __call__(self, value: float) -> float:
        return float(self.inner(value))


class Numbers(Dataset[float]):
    def __init__(self, transform: Callable[[float], float] | None) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> float:
        return self.transform(float(index)) if self.transform is not None else float(index)


class Chain:
    def __init__(self, *transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, value: float) -> float:
        return functools.reduce(lambda out, one: one(out), self.transforms, value)


GLOBAL = Monai()


def by_global(value: float) -> float:
    return GLOBAL(value)


def by_closure(inner: Any) -> Callable[[float], float]:
    return lambda value: float(inner(value))


PLACES: dict[str, Callable[[], Dataset[Any]]] = {
    "albumentations": lambda: Numbers(Albumentations()),
    "monai": lambda: Numbers(Monai()),
    "seeded": lambda: Numbers(Seeded()),
    "imgaug": lambda: Numbers(Imgaug()),
    "subset of a chain": lambda: Subset(Numbers(Chain(Seeded(), Monai())), range(SAMPLES)),
    "a partial": lambda: Numbers(functools.partial(Chain(Seeded()))),
    "a method": lambda: Numbers(Chain(Seeded()).__call__),
    "slots": lambda: Numbers(Slotted(Monai())),
    "a function's global": lambda: Numbers(by_global),
    "a closure": lambda: Numbers(by_closure(Seeded())),
}


def epoch(loader: Any) -> list[float]:
    return [float(value) for batch in loader for value in batch]


@pytest.mark.parametrize("place", PLACES)
def test_samples_depend_on_seed_epoch_and_sample(place: str, caplog: pytest.LogCaptureFixture) -> None:
    found = {}
    for workers in (0, 1, 2):
        loader = feedline.DataLoader(PLACES[place](), batch_size=2, num_workers=workers, seed=5)
        found[workers] = epoch(loader), epoch(loader)
    assert found[0] == found[1] == found[2]
    assert found[0][0] != found[0][1], "another epoch"
    other = feedline.DataLoader(PLACES[place](), batch_size=2, seed=6)
    assert epoch(other) != found[0][0]
    assert "does not seed" not in caplog.text
    assert "also seeds the generators of" in other.explain()


def test_two_transforms_do_not_draw_the_same() -> None:
    class Pair(Numbers):
        def __init__(self) -> None:
            super().__init__(None)
            self.first, self.second = Seeded(), Seeded()

        def __getitem__(self, index: int) -> Any:
            return self.first(0.0), self.second(0.0)

    first, second = next(iter(feedline.DataLoader(Pair(), batch_size=SAMPLES, seed=1)))
    assert not torch.isclose(first, second).any()


def test_collate_functions_are_reached() -> None:
    def made(workers: int) -> list[float]:
        draws = Seeded()
        options: dict[str, Any] = {"collate_fn": lambda rows: torch.tensor([draws(row) for row in rows])}
        return epoch(feedline.DataLoader(Numbers(None), batch_size=2, num_workers=workers, seed=5, **options))

    assert made(0) == made(2)


@pytest.mark.parametrize(
    "generator", [np.random.default_rng(1), np.random.RandomState(1), random.Random(1), torch.Generator()]
)
def test_generators_that_are_not_reached_are_named_once(generator: Any, caplog: pytest.LogCaptureFixture) -> None:
    data = Subset(Numbers(Chain(Raw(generator))), range(SAMPLES))
    loader = feedline.DataLoader(data, batch_size=2, seed=5)
    with caplog.at_level(logging.WARNING, logger="feedline"):
        epoch(loader)
        epoch(loader)
    place = r"Subset.dataset.transform.transforms[0].generator"
    assert [place in record.getMessage() for record in caplog.records] == [True]
    assert f"does not seed the generators of {place}" in loader.explain()
    with caplog.at_level(logging.WARNING, logger="feedline"):
        caplog.clear()
        epoch(feedline.DataLoader(data, batch_size=2))
    assert not caplog.records, "no warning without seed="


def test_threads_share_transforms(caplog: pytest.LogCaptureFixture) -> None:
    loader = feedline.DataLoader(Numbers(Seeded()), batch_size=2, num_workers=2, worker_method="thread", seed=5)
    assert "does not seed the generators of Numbers.transform" in loader.explain()
    with caplog.at_level(logging.WARNING, logger="feedline"):
        epoch(loader)
    assert "Numbers.transform" in caplog.text


def test_long_lists_of_samples_cost_little() -> None:
    data = Numbers(Seeded())
    data.samples = [(f"{i}.jpg", {"label": i}) for i in range(100_000)]  # type: ignore[attr-defined]
    assert "Numbers.transform" in feedline.DataLoader(data, seed=5).explain()


def test_albumentations_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_ALBUMENTATIONS_UPDATE", "1")
    albumentations = pytest.importorskip("albumentations")
    image = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)

    class Crops(Numbers):
        def __getitem__(self, index: int) -> int:
            return int(self.transform(image=image)["image"].astype(int).sum())  # type: ignore[call-arg, index, misc]

    found = []
    for workers in (0, 1, 2):
        chain = albumentations.Compose([albumentations.RandomCrop(8, 8), albumentations.HorizontalFlip()], seed=137)
        found.append(epoch(feedline.DataLoader(Crops(chain), batch_size=1, num_workers=workers, seed=5)))
    assert found[0] == found[1] == found[2]
    assert len(set(found[0])) > 1
