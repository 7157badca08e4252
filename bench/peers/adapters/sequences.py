# SPDX-License-Identifier: Apache-2.0
"""Rows of an array and windows of a token file. Variants: {rows,tokens}-{feedline,stock,numpy}."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset
from work import TOKENS, Work

import feedline

DISTRIBUTIONS = ("feedline", "torch", "numpy")
ROWS, COLUMNS = 200_000, 16
WINDOW, COUNT = 1024, 50_000_000
_WORKERS = 2  # workers of the stock loader for tokens; for rows, it is fastest without workers


def _tokens(work: Work) -> str:
    return str(work.made_file(TOKENS))


def prepare(work: Work) -> None:
    path = _tokens(work)
    if work.transform == "tokens" and not os.path.exists(path):
        part = f"{path}.part"
        np.random.default_rng(0).integers(0, 50_000, COUNT, dtype=np.uint16).tofile(part)
        os.replace(part, path)


class Windows(Dataset[Any]):
    """A common way to read tokens: a dataset in Python over a memory-mapped file."""

    def __init__(self, path: str) -> None:
        self.tokens = np.memmap(path, dtype="uint16", mode="r")

    def __len__(self) -> int:
        return (len(self.tokens) - 1) // WINDOW

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        start = index * WINDOW
        window = torch.from_numpy(self.tokens[start : start + WINDOW + 1].astype(np.int64))
        return window[:-1], window[1:]


def _windows_by_hand(work: Work) -> Any:
    data, offsets = Windows(_tokens(work)), np.arange(WINDOW + 1)

    def epoch() -> Iterator[Any]:
        starts = np.random.default_rng(0).permutation(len(data)) * WINDOW
        for first in range(0, len(starts) - work.batch + 1, work.batch):
            windows = data.tokens[starts[first : first + work.batch, None] + offsets].astype(np.int64)
            yield windows[:, :-1]

    return epoch


def _rows_by_hand(rows: np.ndarray[Any, Any], work: Work) -> Any:
    def epoch() -> Iterator[Any]:
        order = np.random.default_rng(0).permutation(len(rows))
        for first in range(0, len(order) - work.batch + 1, work.batch):
            yield rows[order[first : first + work.batch]]

    return epoch


def make(work: Work) -> Any:
    torch.set_num_threads(1)
    what, who = work.variant.split("-")
    rows = np.random.default_rng(0).random((ROWS, COLUMNS), dtype=np.float32) if what == "rows" else np.empty(0)
    if who == "numpy":
        return _rows_by_hand(rows, work) if what == "rows" else _windows_by_hand(work)
    loader: Any
    if who == "feedline":
        source = (
            feedline.arrays(x=rows) if what == "rows" else feedline.tokens(_tokens(work), window=WINDOW, dtype="uint16")
        )
        loader = source.loader(work.batch, shuffle=True, drop_last=True, num_workers=work.threads)
    elif what == "rows":
        loader = DataLoader(TensorDataset(torch.from_numpy(rows)), work.batch, shuffle=True, drop_last=True)
    else:
        loader = DataLoader(
            Windows(_tokens(work)),
            work.batch,
            shuffle=True,
            drop_last=True,
            num_workers=_WORKERS,
            persistent_workers=True,
        )

    def epoch() -> Iterator[Any]:
        for batch in loader:
            yield batch[0]

    return epoch
