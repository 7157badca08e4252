# SPDX-License-Identifier: Apache-2.0
"""The steps of ``feedline demo``: each gives what it found, and raises where Feedline did not keep its word."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from feedline.bench import measuring
from feedline.bench.stock_loader import StockLoaderMissing, check_stock
from feedline.data import sources
from feedline.data.dataset import Dataset
from feedline.data.images import IMAGENET_MEAN, IMAGENET_STD

_SIZE = 224
_BATCH_SIZE = 32
_SEED = 0


class BrokenPromise(Exception):
    """The tour saw other batches than it was promised."""


def measured(source: str, seconds: float, show: measuring.Show) -> dict[str, Any]:
    """What :func:`feedline.bench.measuring.measure` has of the pictures, with torch's loader where that can run."""
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
    """Training and validation: the samples of each, and that every class has its share."""
    train, valid = split(source)
    return {"train": len(train), "valid": len(valid), "classes": len(train.classes)}


def split(source: str) -> tuple[Dataset, Dataset]:
    """Nine of ten samples of every class with random operations, and the others without."""
    train, valid = sources.open(source).split(0.9, seed=_SEED, by_class=True)
    return (
        train.random_resized_crop(_SIZE).random_horizontal_flip().normalize(IMAGENET_MEAN, IMAGENET_STD),
        valid.resize(256).center_crop(_SIZE).normalize(IMAGENET_MEAN, IMAGENET_STD),
    )


def resumed(source: str) -> dict[str, Any]:
    """Stops in the middle of an epoch, goes on with one thread in place of all, and compares every byte.

    Raises :class:`BrokenPromise` where the batches are not those of the run that was not stopped.
    """
    train, _ = split(source)
    whole, _ = _digests(train, "auto", stop=None)
    stop = len(whole) // 2
    before, state = _digests(train, "auto", stop=stop)
    after, _ = _digests(train, 1, stop=None, state=state)
    if before + after != whole:
        raise BrokenPromise("the resumed run gave other batches than the run that was not stopped")
    return {"batches": len(whole), "stopped_after": stop}


def _digests(
    dataset: Dataset, num_workers: int | Literal["auto"], stop: int | None, state: dict[str, Any] | None = None
) -> tuple[list[str], dict[str, Any]]:
    """Of each batch up to ``stop``, and the loader's state there."""
    digests: list[str] = []
    batch_size = max(1, min(_BATCH_SIZE, len(dataset) // 4))  # several batches of few pictures, too
    options: dict[str, Any] = {"shuffle": True, "seed": _SEED, "epochs": 1, "output": "numpy"}
    with dataset.loader(batch_size, num_workers=num_workers, **options) as loader:
        if state is not None:
            loader.load_state_dict(state)
        batches = iter(loader)
        while len(digests) != stop and (batch := next(batches, None)) is not None:
            digests.append(hashlib.sha256(b"".join(field.tobytes() for field in batch)).hexdigest())
        return digests, loader.state_dict()
