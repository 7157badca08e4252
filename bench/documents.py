# SPDX-License-Identifier: Apache-2.0
"""Documents of different lengths: how much of a batch is padding, and how fast tokens come, with buckets and without.

Documents have exponential lengths, mean 300 tokens, and windows 1,024. "stock" is torch's loader without workers over a
mapped file, padding each batch with ``pad_sequence``. One process, the rounds interleaved; tokens/s count no padding.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

import feedline

_TOKENS, _WINDOW, _ROWS, _BUDGET = 3_000_000, 1024, 16, 16_384


def write_documents(path: Path) -> None:
    """Tokens from 1 on, with a 0 behind each document."""
    random = np.random.default_rng(0)
    tokens = random.integers(1, 50_000, _TOKENS, dtype=np.uint16)
    ends = np.cumsum(2 + random.exponential(300, _TOKENS // 300).astype(np.int64))
    tokens[ends[ends < _TOKENS]] = 0
    tokens.tofile(path)


def stock(documents: feedline.Dataset, path: Path) -> Iterable[tuple[int, int]]:
    tokens = np.memmap(path, dtype=np.uint16, mode="r")
    lengths = np.array([sample.length for sample in documents])
    starts = np.array([int(documents._engine.key(index).removeprefix("token ")) for index in range(len(documents))])

    def collate(chosen: list[int]) -> tuple[torch.Tensor, torch.Tensor, int]:
        pieces = [torch.from_numpy(tokens[starts[i] : starts[i] + lengths[i] + 1].astype(np.int64)) for i in chosen]
        x = pad_sequence([piece[:-1] for piece in pieces], batch_first=True)
        y = pad_sequence([piece[1:] for piece in pieces], batch_first=True, padding_value=-100)
        return x, y, int(lengths[chosen].sum())

    loader = DataLoader(range(len(documents)), _ROWS, shuffle=True, collate_fn=collate)  # type: ignore[arg-type]
    return ((used, x.numel()) for x, _y, used in loader)


def ours(documents: feedline.Dataset, **options: Any) -> Iterable[tuple[int, int]]:
    loader = documents.loader(shuffle=True, num_workers=2, **options)
    return ((int(batch.length.sum()), batch.x.numel()) for batch in loader)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "documents.bin"
        write_documents(path)
        began = time.perf_counter()
        data = feedline.tokens(path, window=_WINDOW, dtype="uint16", separator=0, documents="apart")
        opened = time.perf_counter() - began
        print(f"opened {_TOKENS:,} tokens in {1e3 * opened:.1f} ms: {data.explain().splitlines()[1]}")
        cases: dict[str, Callable[[], Iterable[tuple[int, int]]]] = {
            f"torch, {_ROWS} rows": lambda: stock(data, path),
            f"feedline, {_ROWS} rows": lambda: ours(data, batch_size=_ROWS),
            f"feedline, {_ROWS} rows, 8 buckets": lambda: ours(data, batch_size=_ROWS, buckets=8),
            f"feedline, {_BUDGET} tokens, 8 buckets": lambda: ours(data, buckets=8, max_tokens=_BUDGET),
        }
        speeds: dict[str, list[float]] = {name: [] for name in cases}
        padding: dict[str, float] = {}
        for _ in range(rounds):
            for name, make in cases.items():
                batches = make()
                began = time.perf_counter()
                counts = list(batches)
                seconds = time.perf_counter() - began
                used, filled = (sum(column) for column in zip(*counts, strict=True))
                speeds[name].append(used / seconds / 1e6)
                padding[name] = 1 - used / filled
    for name, found in speeds.items():
        spread = f"{statistics.median(found):7.1f} ({min(found):.1f} to {max(found):.1f})"
        print(f"{name:34} {spread} million tokens/s, {padding[name]:6.1%} padding")


if __name__ == "__main__":
    main()
