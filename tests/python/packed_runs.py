# SPDX-License-Identifier: Apache-2.0
"""Datasets for tests of packed sequences, an independent check of a batch's fields, and random interrupted runs."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pickle
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import made_megatron
import numpy as np

import feedline

Piece = tuple[int, ...]
Row = tuple[Piece, ...]


def written(folder: Path, lengths: list[int], dtype: str = "int32") -> feedline.Dataset:
    """A dataset of documents with these lengths. A token's value is its position in the file, which identifies it."""
    ends = np.cumsum([0, *lengths])
    documents = [range(begin, end) for begin, end in itertools.pairwise(ends)]
    return feedline.open(made_megatron.write(folder / "tokens", documents, dtype))


def model_labels(piece: Piece) -> list[int]:
    """The labels of a piece in a dataset without loss mask, for models that shift them."""
    return [-100, *piece[1:]]


def rows_of(batch: Any, multiple: int = 1, labels_of: Callable[[Piece], list[int]] = model_labels) -> list[Row]:
    """The pieces of each row, as tuples of tokens; checks all other fields of the batch against them.

    Args:
        multiple: pieces are padded to a multiple of this many tokens.
        labels_of: returns the labels of a piece.
    """
    rows, ends = [], [0]
    tokens, length = batch.input_ids, batch.input_ids.shape[1]
    for row in range(len(tokens)):
        numbers, at, pieces = batch.document_ids[row], 0, []
        for number in range(numbers.max() + 1):
            (places,) = np.nonzero(numbers == number)
            piece = tuple(tokens[row, places].tolist())
            stored = -(-len(piece) // multiple) * multiple
            assert places.tolist() == list(range(at, at + len(piece)))
            assert batch.labels[row, places].tolist() == labels_of(piece)
            check_padding(batch, row, at + len(piece), at + stored)
            assert batch.position_ids[row, at : at + stored].tolist() == list(range(stored))
            pieces.append(piece)
            at += stored
            ends.append(row * length + at)
        check_padding(batch, row, at, length)
        assert batch.position_ids[row, at:].tolist() == list(range(length - at))
        rows.append(tuple(pieces))
        if at < length:
            ends.append((row + 1) * length)
    assert batch.cu_seqlens.dtype == np.int32
    assert batch.cu_seqlens.tolist() == ends
    assert batch.max_seqlen == max(end - begin for begin, end in itertools.pairwise(ends))
    return rows


def check_padding(batch: Any, row: int, begin: int, end: int) -> None:
    assert (batch.input_ids[row, begin:end] == 0).all()
    assert (batch.labels[row, begin:end] == -100).all()
    assert (batch.document_ids[row, begin:end] == -1).all()


def epoch_of(loader: Any) -> list[list[Row]]:
    return [rows_of(batch) for batch in loader]


@dataclass
class Case:
    """A packed dataset, and what its rows must contain."""

    packed: Any  # PackedSequences
    tokens: list[int]  # of an epoch, sorted
    multiple: int
    labels_of: Callable[[Piece], list[int]]

    def rows(self, batch: Any) -> list[Row]:
        return rows_of(batch, self.multiple, self.labels_of)


def drawn_case(rng: np.random.Generator, folder: Path) -> Case:
    """Draws lengths, masks and all options of `pack_sequences`."""
    next_token, masked = bool(rng.integers(2)), bool(rng.integers(2))
    # arrays have no empty rows
    lengths = rng.integers(int(masked), int(rng.integers(2, 120)), int(rng.integers(1, 150))).tolist()
    multiple = int(rng.choice([1, 1, 2, 5, 8]))
    length = multiple * int(rng.integers(-(-4 // multiple), 64 // multiple))
    concat = rng.integers(4) == 0
    long = "split" if concat else str(rng.choice(["split", "truncate", "drop"]))
    total = sum(lengths)
    mask = rng.integers(0, 2, total).astype(bool) if masked else np.ones(total, bool)
    if masked:
        columns = {"input_ids": np.arange(total, dtype=np.int32), "loss_mask": mask}
        dataset = feedline.arrays(**{name: feedline.ragged(values, lengths) for name, values in columns.items()})
    else:
        dataset = written(folder, lengths)
    packed = dataset.pack_sequences(
        length,
        "concat" if concat else "best_fit",
        long,  # type: ignore[arg-type]
        int(rng.integers(1, 200)),
        labels="next_token" if next_token else "input_ids",
        pad_to_multiple_of=multiple,
    )
    ends = np.cumsum([0, *lengths]).tolist()
    pairs = [*itertools.pairwise(ends)]
    most = {"split": total, "truncate": length, "drop": 0}[long]
    used = [range(a, b if b - a <= length else min(b, a + most)) for a, b in pairs]
    last = {part[-1] for part in used if part}

    def labels_of(piece: Piece) -> list[int]:
        if next_token:
            return [token + 1 if token not in last and mask[token + 1] else -100 for token in piece]
        return [-100, *(token if mask[token] else -100 for token in piece[1:])]

    return Case(packed, [token for part in used for token in part], multiple, labels_of)


def random_case(rng: np.random.Generator, folder: Path) -> None:
    """A run that is interrupted or killed, and resumed on other numbers of ranks and rows, has the packs of a
    single-rank run, and these have every token once.
    """
    case = drawn_case(rng, folder)
    common = {"shuffle": bool(rng.integers(2)), "seed": int(rng.integers(100)), "output": "numpy", "uneven": "exact"}
    epoch = int(rng.integers(3))
    with case.packed.loader(1, **common) as loader:
        loader.set_epoch(epoch)
        assert len(loader) == case.packed.count(epoch, shuffle=common["shuffle"], seed=common["seed"])["packs"]
        stream = [row for batch in loader for row in case.rows(batch)]
    assert sorted(token for row in stream for piece in row for token in piece) == case.tokens

    state, at = None, 0
    while at < len(stream):
        ranks, rows = int(rng.integers(1, 5)), int(rng.integers(1, 4))
        run = Run(case, ranks, rows, common, epoch, state)
        if rng.integers(10) == 0:
            steps = killed_steps(run, folder / "steps", float(rng.exponential(0.01)))
            steps = steps[: int(rng.integers(len(steps) + 1))]  # the last checkpoint may be older
        else:
            steps = list(itertools.islice(run.steps(), int(rng.integers(1, 6))))
            assert steps
        for found, saved in steps:
            expected = stream[at : at + ranks * rows]
            assert Counter(found) == Counter(expected)
            at += len(expected)
            state = json.loads(saved)
            assert len(saved) < 1024


@dataclass
class Run:
    """A run of all ranks of an epoch, from a state on."""

    case: Case
    ranks: int
    rows: int
    common: dict[str, Any]
    epoch: int
    state: Any  # None: the epoch's start

    def steps(self) -> Iterator[tuple[list[Row], str]]:
        """Yields the rows of each global batch, and the state after it."""
        with contextlib.ExitStack() as held:
            loaders = [held.enter_context(self._loader(rank)) for rank in range(self.ranks)]
            iterators = [iter(loader) for loader in loaders]
            while True:
                parts = [next(iterator, None) for iterator in iterators]
                if all(part is None for part in parts):
                    return
                if all(part is not None for part in parts):
                    assert len({len(part.input_ids) for part in parts if part is not None}) <= 2
                    states = [loader.state_dict() for loader in loaders]
                    assert all(other == states[0] for other in states)
                rows = [row for part in parts if part is not None for row in self.case.rows(part)]
                yield rows, json.dumps(loaders[0].state_dict())  # rank 0 has the last rows

    def _loader(self, rank: int) -> Any:
        loader = self.case.packed.loader(self.rows, rank=rank, world_size=self.ranks, num_workers=1, **self.common)
        if self.state is None:
            loader.set_epoch(self.epoch)
        else:
            loader.load_state_dict(self.state)
        return loader


def killed_steps(run: Run, log: Path, seconds: float) -> list[tuple[list[Row], str]]:
    """Runs in a forked process that is killed after this time, and returns the steps that it stored before."""
    log.write_bytes(b"")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            with log.open("ab", buffering=0) as file:
                for step in run.steps():
                    file.write(pickle.dumps(step))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    steps = []
    with log.open("rb") as file, contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            steps.append(pickle.load(file))
    return steps
