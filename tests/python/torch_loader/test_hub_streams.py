# SPDX-License-Identifier: Apache-2.0
"""Streams of Hugging Face's datasets that are interrupted several times deliver each sample of an uninterrupted run
once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

import feedline

datasets = pytest.importorskip("datasets")

Stream = Any


def table(rows: int = 97, shards: int = 6) -> Stream:
    return datasets.Dataset.from_dict({"x": list(range(rows))}).to_iterable_dataset(num_shards=shards)


def plus_one(row: dict[str, int]) -> dict[str, int]:
    return {"x": row["x"] + 1}


def doubled(batch: dict[str, list[int]]) -> dict[str, list[int]]:
    return {"x": [value for value in batch["x"] for _ in range(2)]}


def same(tables: Any) -> Any:
    return tables


STREAMS: dict[str, Callable[[], Stream]] = {
    "plain": table,
    "shuffled": lambda: table().shuffle(seed=3, buffer_size=10),
    "shuffled shards": lambda: table().shuffle(seed=3, buffer_size=1),
    "maps around a shuffle": lambda: table().map(plus_one).shuffle(seed=1, buffer_size=9).map(plus_one),
    "batched map": lambda: table().map(doubled, batched=True, batch_size=7),
    "batched map of tables": lambda: table().with_format("arrow").map(same, batched=True, batch_size=7),
    "skip and take": lambda: table().shuffle(seed=1, buffer_size=9).skip(5).take(60),
    "repeated": lambda: table(20, 2).shuffle(seed=1, buffer_size=9).repeat(3),
    "interleaved with a shuffled one": lambda: datasets.interleave_datasets(
        [table(30, 2).shuffle(seed=1, buffer_size=5), table(40, 2)], probabilities=[0.3, 0.7], seed=1
    ),
}


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [row["x"] if isinstance(row["x"], int) else row["x"].to_pylist()[0] for row in rows]


def loader(stream: Stream, workers: int, **options: Any) -> feedline.DataLoader[Any]:
    return feedline.DataLoader(stream, batch_size=4, num_workers=workers, collate_fn=numbers, **options)


def interrupted(make: Callable[[], Any], plan: tuple[int, ...]) -> list[int]:
    """Returns the samples of runs that stop after this many batches each, the last one at the end of the epoch."""
    found: list[int] = []
    state: Any = None
    for batches in (*plan, 1000):
        part = make()
        if state is not None:
            part.load_state_dict(state)
        for count, batch in enumerate(part, 1):
            found += batch
            if count == batches:
                break
        state = json.loads(json.dumps(part.state_dict()))
    return found


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", STREAMS)
def test_runs_stopped_several_times_lose_and_repeat_nothing(kind: str, workers: int) -> None:
    def make() -> Any:
        return loader(STREAMS[kind](), workers)

    whole = [x for batch in make() for x in batch]
    plans = ((3, 1), (5, 2, 1)) if workers else ((3,), (3, 1), (8, 5), (1, 1, 1))
    for plan in plans:
        assert interrupted(make, plan) == whole, plan


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("buffer", [1, 9])
def test_a_state_has_the_epoch_that_the_stream_was_set_to(workers: int, buffer: int) -> None:
    stream = table().shuffle(seed=2, buffer_size=buffer)
    stream.set_epoch(3)
    first = loader(stream, workers)
    batches = iter(first)
    next(batches)
    state = first.state_dict()
    rest = list(batches)
    fresh = loader(table().shuffle(seed=2, buffer_size=buffer), workers)
    fresh.load_state_dict(state)
    assert list(fresh) == rest


def test_states_of_a_buffer_that_earlier_versions_saved_are_read_and_dropped() -> None:
    stream = STREAMS["shuffled"]()
    first = loader(stream, 0)
    batches = iter(first)
    for _ in range(3):
        next(batches)
    state = first.state_dict()
    rest = list(batches)
    own = {"dataset": stream.state_dict(), "iterator": None, "ended": False, "count": 12}
    state["workers"][0] |= {"state": own, "since": 0}
    fresh = loader(STREAMS["shuffled"](), 0)
    fresh.load_state_dict(state)
    assert list(fresh) == rest


def test_another_version_of_datasets(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    states = {}
    for kind in ("plain", "shuffled"):
        first = loader(STREAMS[kind](), 0)
        next(iter(first))
        states[kind] = first.state_dict()
    monkeypatch.setattr(datasets, "__version__", "99.0")
    with pytest.raises(feedline.ConfigError, match=r"but datasets 99\.0 is installed"):
        loader(STREAMS["shuffled"](), 0).load_state_dict(states["shuffled"])
    with caplog.at_level(logging.WARNING, logger="feedline"):
        loader(STREAMS["plain"](), 0).load_state_dict(states["plain"])
    assert "but 99.0 is installed" in caplog.text
