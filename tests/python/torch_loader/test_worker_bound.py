# SPDX-License-Identifier: Apache-2.0
"""num_workers has the same limit everywhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset

import feedline
from feedline import packing, verifying


class Rows(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(2)


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(8))


ARRAYS = feedline.arrays(x=np.zeros((8, 2), np.float32))
DOORS: dict[str, Callable[[int], Any]] = {
    "Dataset.loader": lambda n: ARRAYS.loader(4, num_workers=n, output="numpy"),
    "a class": lambda n: feedline.DataLoader(Rows(), num_workers=n),
    "a stream": lambda n: feedline.DataLoader(Stream(), num_workers=n),
    "threads": lambda n: feedline.DataLoader(Rows(), num_workers=n, worker_method="thread"),
    "arrays of torch": lambda n: feedline.DataLoader(TensorDataset(torch.zeros(8)), num_workers=n),
    "our dataset": lambda n: feedline.DataLoader(ARRAYS, num_workers=n),
    "rules": lambda n: feedline.DataLoader(Rows(), num_workers=n, settings="auto"),
    "torchdata's name": lambda n: feedline.StatefulDataLoader(Rows(), num_workers=n),
    "a pool": lambda n: feedline.DataLoader(Rows(), num_workers=n, pool=feedline.WorkerPool()),
    "the attribute": lambda n: setattr(feedline.DataLoader(Rows()), "num_workers", n),
}


@pytest.mark.parametrize("door", DOORS)
def test_doors_have_one_bound_and_one_message(door: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        DOORS[door](1024)
        for count in (1025, 10**6, 2**31, 2**70):
            with pytest.raises(feedline.ConfigError) as refused:
                DOORS[door](count)
            assert str(refused.value) == f"loader: num_workers must be between 0 and 1024, got {count}"


@pytest.mark.parametrize("door", DOORS)
def test_doors_refuse_what_is_no_count(door: str) -> None:
    # Negative counts raise torch's error, as in torch.
    error = feedline.ConfigError if door == "Dataset.loader" else ValueError
    if door != "the attribute":
        with pytest.raises(
            error, match=r"num_workers (must be between 0 and 1024, got -1|option should be non-negative)"
        ):
            DOORS[door](-1)
    for value in (None, 1.5, "3", [2]):
        with pytest.raises(feedline.ConfigError) as refused:
            DOORS[door](value)  # type: ignore[arg-type]
        assert str(refused.value) == f'loader: num_workers must be an integer or "auto", not {value!r}'
    with pytest.raises(feedline.ConfigError, match="between 0 and 1024, got 5000"):
        DOORS[door](np.int64(5000))  # type: ignore[arg-type]


def test_verify_and_pack_have_the_same_bound(tmp_path: Path) -> None:
    with pytest.raises(feedline.ConfigError, match=r"verify: num_workers must be between 1 and 1024, got 1025"):
        verifying.verify(tmp_path, num_workers=1025)
    for name in ("num_workers", "jobs"):
        with pytest.raises(feedline.ConfigError, match=f"pack: {name} must be (between|from) 1 (and|to) 1024"):
            packing.pack(tmp_path, tmp_path / "out", **{name: 1025})
