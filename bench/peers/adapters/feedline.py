# SPDX-License-Identifier: Apache-2.0
"""Feedline. Variants: folder, tar, numpy (no torch), fast (DCT scaling), cached (pixels decoded once), cached-256."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from work import MEAN, SHORTER, SIZE, STD, Work, refuse

import feedline

DISTRIBUTIONS = ("feedline", "torch", "numpy")


def _decoded_once(dataset: Any, work: Work) -> Any:
    if work.variant not in ("cached", "cached-256"):
        return dataset
    refuse(not hasattr(feedline.Dataset, "cache"), "this build of Feedline has no Dataset.cache")
    return (dataset.resize(SHORTER) if work.variant == "cached-256" else dataset.decode()).cache("memory")


def _transformed(dataset: Any, work: Work) -> Any:
    if work.train:
        dataset = dataset.random_resized_crop(SIZE).random_horizontal_flip()
    else:
        dataset = dataset.resize(SHORTER).center_crop(SIZE)
    return dataset.normalize(MEAN, STD) if work.floating else dataset


def _fidelity(work: Work, *functions: Any) -> list[dict[str, str]]:
    """For each of the functions its keyword for fast decoding: the first that has one gets it."""
    if work.variant != "fast":
        return [{} for _ in functions]
    takes = ["fidelity" in inspect.signature(function).parameters for function in functions]
    refuse(not any(takes), 'this build of Feedline has no fidelity="fast"')
    return [{"fidelity": "fast"} if i == takes.index(True) else {} for i in range(len(takes))]


def imports(work: Work) -> None:
    if work.variant != "numpy":
        import torch  # noqa: F401


def make(work: Work) -> Any:
    for_open, for_loader = _fidelity(work, feedline.open, feedline.Dataset.loader)
    dataset = feedline.open(work.tars if work.variant == "tar" else work.folder, **for_open)
    dataset = _transformed(_decoded_once(dataset, work), work)
    output = "numpy" if work.variant == "numpy" else "torch"
    loader = dataset.loader(
        work.batch, shuffle=work.train, drop_last=True, num_workers=work.threads, output=output, **for_loader
    )

    def epoch() -> Iterator[Any]:
        for batch in loader:
            yield batch[0]

    return epoch
