# SPDX-License-Identifier: Apache-2.0
"""The steps of ``feedline demo``: each returns its results, and raises BrokenPromise if Feedline violates a
guarantee.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable
from typing import Any, Literal

from feedline.bench import measuring
from feedline.bench.stock_loader import StockLoaderMissing, check_stock
from feedline.data import sources
from feedline.data.dataset import Dataset

from ..imagenet import IMAGENET_MEAN, IMAGENET_STD

_SIZE = 224
_BATCH_SIZE = 32
_SEED = 0


class BrokenPromise(Exception):
    """The tour found batches that violate a guarantee."""


def measured(source: str, seconds: float, show: measuring.Show) -> dict[str, Any]:
    """Returns :func:`feedline.bench.measuring.measure` of the images, including torch's loader if it can run."""
    try:
        check_stock(source)
        compares = True
    except StockLoaderMissing:
        compares = False
    result, _ = measuring.measure(
        source,
        batch_size=_BATCH_SIZE,
        size=_SIZE,
        num_workers="auto",
        seconds=seconds,
        against_torch=compares,
        show=show,
    )
    return result


def parts(source: str) -> dict[str, Any]:
    """Splits into training and validation sets; returns the number of samples in each and the number of classes."""
    train, valid = split(source)
    return {"train": len(train), "valid": len(valid), "classes": len(train.classes)}


def split(source: str) -> tuple[Dataset, Dataset]:
    """Returns a training set with nine tenths of each class's samples and random operations, and a validation set with
    the other samples and without random operations.
    """
    train, valid = sources.open(source).split(0.9, seed=_SEED, by_class=True)
    return (
        train.random_resized_crop(_SIZE).random_horizontal_flip().normalize(IMAGENET_MEAN, IMAGENET_STD),
        valid.resize(256).center_crop(_SIZE).normalize(IMAGENET_MEAN, IMAGENET_STD),
    )


def resumed(source: str) -> dict[str, Any]:
    """Stops in the middle of an epoch, resumes with one thread instead of all threads, and compares every byte.

    Raises :class:`BrokenPromise` if the batches differ from those of an uninterrupted run.
    """
    train, _ = split(source)
    whole, _ = _digests(train, "auto", stop=None)
    stop = len(whole) // 2
    before, state = _digests(train, "auto", stop=stop)
    after, _ = _digests(train, 1, stop=None, state=state)
    if before + after != whole:
        raise BrokenPromise("the resumed run returned different batches from the uninterrupted run")
    return {"batches": len(whole), "stopped_after": stop}


def can_train() -> bool:
    """Returns whether torch is installed."""
    return importlib.util.find_spec("torch") is not None


def trained(source: str, epochs: int, done: Callable[[int], object]) -> list[dict[str, float]]:
    """Trains a small network on the photos; returns ``loss``, ``seconds`` and ``waited_s`` of each epoch."""
    from . import training  # imports torch

    return [epoch._asdict() for epoch in training.train(source, epochs, done)]


def _digests(
    dataset: Dataset, num_workers: int | Literal["auto"], stop: int | None, state: dict[str, Any] | None = None
) -> tuple[list[str], dict[str, Any]]:
    """Returns a hash of each batch before ``stop``, and the loader's state at ``stop``."""
    digests: list[str] = []
    batch_size = max(1, min(_BATCH_SIZE, len(dataset) // 4))  # several batches even for few images
    options: dict[str, Any] = {"shuffle": True, "seed": _SEED, "epochs": 1, "output": "numpy"}
    with dataset.loader(batch_size, num_workers=num_workers, **options) as loader:
        if state is not None:
            loader.load_state_dict(state)
        batches = iter(loader)
        while len(digests) != stop and (batch := next(batches, None)) is not None:
            digests.append(hashlib.sha256(b"".join(field.tobytes() for field in batch)).hexdigest())
        return digests, loader.state_dict()
