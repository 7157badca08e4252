# SPDX-License-Identifier: Apache-2.0
"""Datasets for tests of packed sequences, an independent check of a batch's fields, and random interrupted runs."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import made_megatron
import numpy as np

import feedline


def written(folder: Path, lengths: list[int], dtype: str = "int32") -> feedline.Dataset:
    """A dataset of documents with these lengths. A token's value is its position in the file, which identifies it."""
    ends = np.cumsum([0, *lengths])
    documents = [range(begin, end) for begin, end in itertools.pairwise(ends)]
    return feedline.open(made_megatron.write(folder / "tokens", documents, dtype))


def rows_of(batch: Any) -> list[tuple[tuple[int, ...], ...]]:
    """The pieces of each row, as tuples of tokens; checks all other fields of the batch against them."""
    rows, ends, longest = [], [0], 0
    tokens, length = batch.input_ids, batch.input_ids.shape[1]
    for row in range(len(tokens)):
        numbers = batch.document_ids[row]
        used = int((numbers >= 0).sum())
        assert (numbers[used:] == -1).all()
        assert (tokens[row, used:] == 0).all()
        assert (batch.labels[row, used:] == -100).all()
        assert batch.position_ids[row, used:].tolist() == list(range(length - used))
        pieces = []
        for number in range(int(numbers.max()) + 1 if used else 0):
            (places,) = np.nonzero(numbers == number)
            assert places.tolist() == list(range(places[0], places[-1] + 1))
            piece = tokens[row, places]
            pieces.append(tuple(piece.tolist()))
            assert batch.labels[row, places].tolist() == [-100, *piece[1:].tolist()]
            assert batch.position_ids[row, places].tolist() == list(range(len(places)))
        rows.append(tuple(pieces))
        for segment in [*map(len, pieces), *([length - used] if used < length else [])]:
            ends.append(ends[-1] + segment)
            longest = max(longest, segment)
    assert batch.cu_seqlens.dtype == np.int32
    assert batch.cu_seqlens.tolist() == ends
    assert batch.max_seqlen == longest
    return rows


def epoch_of(loader: Any) -> list[list[tuple[tuple[int, ...], ...]]]:
    return [rows_of(batch) for batch in loader]


def random_case(rng: np.random.Generator, folder: Path) -> None:
    """A run that is interrupted and resumed on other numbers of ranks and rows has the packs of a single-rank run."""
    lengths = rng.integers(0, int(rng.integers(2, 120)), int(rng.integers(1, 150))).tolist()
    if not any(lengths):
        return
    packed = written(folder, lengths).pack_sequences(
        int(rng.integers(4, 64)),
        "concat" if rng.integers(4) == 0 else "best_fit",
        window=int(rng.integers(1, 200)),
    )
    common = {"shuffle": bool(rng.integers(2)), "seed": int(rng.integers(100)), "output": "numpy", "uneven": "exact"}
    epoch = int(rng.integers(3))
    with packed.loader(1, **common) as loader:
        loader.set_epoch(epoch)
        assert len(loader) == packed.count(epoch, shuffle=common["shuffle"], seed=common["seed"])["packs"]
        stream = [batch[0] for batch in epoch_of(loader)]
    tokens = sorted(token for row in stream for piece in row for token in piece)
    assert tokens == list(range(sum(lengths)))

    state, at = None, 0
    while at < len(stream):
        ranks, rows = int(rng.integers(1, 5)), int(rng.integers(1, 4))
        batches = int(rng.integers(1, 6))  # until the next interruption
        loaders = [packed.loader(rows, rank=rank, world_size=ranks, num_workers=1, **common) for rank in range(ranks)]
        iterators, states = [], []
        for loader in loaders:
            if state is None:
                loader.set_epoch(epoch)
            else:
                loader.load_state_dict(state)
            iterators.append(iter(loader))
        for _ in range(batches):
            expected = stream[at : at + ranks * rows]
            parts = [next(iterator, None) for iterator in iterators]
            found = [row for part in parts if part is not None for row in rows_of(part)]
            assert Counter(found) == Counter(expected)
            if all(part is not None for part in parts):
                assert len({len(part.input_ids) for part in parts if part is not None}) <= 2
                states = [loader.state_dict() for loader in loaders]
                assert all(other == states[0] for other in states)
            at += len(expected)
            state = json.loads(json.dumps(loaders[0].state_dict()))  # rank 0 has the last rows
            assert len(json.dumps(state)) < 1024
            if at >= len(stream):
                break
        for loader in loaders:
            loader.close()
