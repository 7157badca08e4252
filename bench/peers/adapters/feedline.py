# SPDX-License-Identifier: Apache-2.0
"""Feedline. Variants: folder, tar, numpy (without torch), fast (DCT scaling), cached (pixels decoded once), cached-256;
tars in stored order, with shuffled shards (stored, shards), and cached on this node while they are read (node-cache).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from work import MEAN, SHORTER, SIZE, STD, Work, refuse

import feedline

DISTRIBUTIONS = ("feedline", "torch", "numpy")
_ORDERS: dict[str, bool | str] = {"stored": False, "shards": "shards", "node-cache": "shards"}


def _decoded(dataset: Any, work: Work) -> Any:
    if work.variant == "fast":
        takes = inspect.signature(feedline.Dataset.decode).parameters
        refuse("fidelity" not in takes, 'this version of Feedline has no decode(fidelity="fast")')
        return dataset.decode(fidelity="fast")
    if work.variant in ("cached", "cached-256"):
        refuse(not hasattr(feedline.Dataset, "cache"), "this version of Feedline has no Dataset.cache")
        return (dataset.resize(SHORTER) if work.variant == "cached-256" else dataset.decode()).cache("memory")
    return dataset


def _transformed(dataset: Any, work: Work) -> Any:
    if work.train:
        dataset = dataset.random_resized_crop(SIZE).random_horizontal_flip()
    else:
        dataset = dataset.resize(SHORTER).center_crop(SIZE)
    return dataset.normalize(MEAN, STD) if work.floating else dataset


def imports(work: Work) -> None:
    if work.variant != "numpy":
        import torch  # noqa: F401


def _opened(work: Work) -> Any:
    if work.variant == "node-cache":
        return feedline.open(work.tars, cache=work.made_file("node-cache"))
    return feedline.open(work.tars if work.variant in ("tar", *_ORDERS) else work.folder)


def make(work: Work) -> Any:
    dataset = _opened(work)
    loader = _transformed(_decoded(dataset, work), work).loader(
        work.batch,
        shuffle=_ORDERS.get(work.variant, work.train),
        drop_last=True,
        num_workers=work.threads,
        output="numpy" if work.variant == "numpy" else "torch",
    )

    def epoch() -> Iterator[Any]:
        for batch in loader:
            yield batch[0]

    return epoch
