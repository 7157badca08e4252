# SPDX-License-Identifier: Apache-2.0
"""`Loader.reshard`: ranks leave and join within an epoch, and every sample is delivered once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline

ROWS = 101


def loader_of(rank: int, world_size: int, **options: Any) -> feedline.Loader:
    given = {"batch_size": 3, "shuffle": True, "seed": 5, "uneven": "exact", "output": "numpy", **options}
    return feedline.arrays(y=np.arange(ROWS)).loader(rank=rank, world_size=world_size, **given)


class Ranks:
    """The loaders of all ranks in this process; each runs its own `for` loop."""

    def __init__(self, world_size: int, **options: Any) -> None:
        self.held = ExitStack()
        self.options = options
        self.loaders = [self.held.enter_context(loader_of(rank, world_size, **options)) for rank in range(world_size)]
        self.loops: list[Iterator[Any]] = [iter(loader) for loader in self.loaders]
        self.seen: list[int] = []

    def steps(self, count: int) -> None:
        for _ in range(count):
            for loader, loop in zip(self.loaders, self.loops, strict=True):
                batch = next(loop)
                assert batch.y.tolist() == loader.last_samples
                self.seen += loader.last_samples

    def rest(self) -> None:
        for loader, loop in zip(self.loaders, self.loops, strict=True):
            for _ in loop:
                self.seen += loader.last_samples

    def leave(self, number: int) -> None:
        self.loaders.pop(number).close()
        self.loops.pop(number)
        self.agree()

    def join(self) -> None:
        world_size, state = len(self.loaders) + 1, self.loaders[0].state_dict()
        self.agree(world_size)
        loader = self.held.enter_context(loader_of(world_size - 1, world_size, **self.options))
        loader.load_state_dict(state)
        self.loaders.append(loader)
        self.loops.append(iter(loader))

    def agree(self, world_size: int | None = None, state: Any = None) -> None:
        for rank, loader in enumerate(self.loaders):
            loader.reshard(rank, world_size or len(self.loaders), state=state)


@pytest.mark.parametrize("shuffle", [True, False])
def test_no_sample_is_lost_or_repeated(shuffle: bool) -> None:
    ranks = Ranks(3, shuffle=shuffle)
    with ranks.held:
        ranks.steps(3)
        ranks.leave(1)
        assert [loader.state_dict()["position"] for loader in ranks.loaders] == [27, 27]
        ranks.steps(4)
        ranks.join()
        ranks.join()
        ranks.steps(2)
        assert len(ranks.seen) == 27 + 24 + 24
        ranks.leave(0)
        ranks.rest()
        assert sorted(ranks.seen) == list(range(ROWS))
        ranks.seen.clear()
        ranks.loops = [iter(loader) for loader in ranks.loaders]
        ranks.rest()
        assert sorted(ranks.seen) == list(range(ROWS)), "the next epoch has the new number of ranks"
        assert {loader.epoch for loader in ranks.loaders} == {2}


def test_a_step_that_was_not_committed_is_repeated() -> None:
    ranks = Ranks(2)
    with ranks.held:
        ranks.steps(4)
        committed, before = ranks.loaders[0].state_dict(), list(ranks.seen)
        ranks.steps(1)  # rank 1 dies before the step's gradients are averaged
        ranks.loaders.pop(1).close()
        ranks.loops.pop(1)
        ranks.agree(state=committed)
        ranks.seen = before
        ranks.rest()
        assert sorted(ranks.seen) == list(range(ROWS))


def test_several_epochs_of_one_loop() -> None:
    with loader_of(0, 1, epochs=3, batch_size=50) as loader:
        seen: list[int] = []
        state = loader.state_dict()
        for step, _ in enumerate(loader):
            seen += loader.last_samples
            if step == 2:  # the last batch of epoch 0
                state = loader.state_dict()
                loader.reshard(0, 1)
            elif step == 4:
                loader.reshard(0, 1, state=state)  # to the beginning of epoch 1
                seen = seen[:ROWS]
        assert np.bincount(seen).tolist() == [3] * ROWS
        assert list(loader) and loader.epoch == 6


def test_after_the_last_batch_the_loop_ends() -> None:
    with loader_of(0, 1, batch_size=50) as loader:
        loop = iter(loader)
        for _ in range(3):
            next(loop)
        loader.reshard(0, 2)
        assert list(loop) == []
        assert len(list(loader)) == 2 and loader.epoch == 2


def test_before_the_first_batch_and_between_epochs() -> None:
    with loader_of(0, 1) as loader:
        loader.reshard(1, 2)
        assert len(loader) == len(list(loader)) == 17
        state = loader.state_dict()
        loader.reshard(0, 1, state=state)
        assert loader.state_dict() == state
        assert sum(len(batch.y) for batch in loader) == ROWS


def test_samplers_and_weights() -> None:
    order = [index for index in range(ROWS) if index % 2]
    with loader_of(0, 1, shuffle=False, sampler=order) as loader:
        loop = iter(loader)
        next(loop)
        first = loader.last_samples
        loader.reshard(1, 2)
        seen = first + [index for _ in loop for index in loader.last_samples]
        assert seen[:6] == order[:3] + order[6:9]
    with loader_of(0, 1, shuffle=False, weights=np.arange(1.0, ROWS + 1)) as loader:
        loop = iter(loader)
        next(loop)
        loader.reshard(0, 2)
        assert sum(len(batch.y) for batch in loop) == 49


def test_bad_arguments_change_nothing() -> None:
    with loader_of(0, 2) as loader, loader_of(0, 2, seed=6) as other:
        loop = iter(loader)
        next(loop)
        for arguments in ((2, 2), (-1, 2), ("0", 2), (0, 0)):
            with pytest.raises(feedline.ConfigError, match="reshard"):
                loader.reshard(*arguments)  # type: ignore[arg-type]
        with pytest.raises(feedline.ConfigError, match=r"^reshard: the state was saved with seed"):
            loader.reshard(0, 1, state=other.state_dict())
        assert sum(len(batch.y) for batch in loop) == 51 - 3, "the loop continues with its old share"
    with pytest.raises(feedline.Error, match="closed"):
        loader.reshard(0, 1)


def test_packed_sequences() -> None:
    tokens = np.arange(40 * 30, dtype=np.uint16)
    lengths = np.full(40, 30)
    documents = feedline.arrays(tokens=feedline.ragged(tokens, lengths))
    packed = documents.pack_sequences(90)

    def make(rank: int, world_size: int) -> Any:
        return packed.loader(1, rank=rank, world_size=world_size, output="numpy", shuffle=True, seed=3)

    def all_tokens(batches: Any) -> list[int]:
        return [int(t) for b in batches for t in b.input_ids[b.document_ids >= 0]]

    with make(0, 1) as loader, make(1, 2) as joined:
        loop = iter(loader)
        first = [next(loop) for _ in range(4)]
        joined.load_state_dict(loader.state_dict())
        loader.reshard(0, 2)
        seen = all_tokens([*first, *loop, *joined])
        assert len(set(seen)) == len(tokens)


def test_the_old_threads_end() -> None:
    with loader_of(0, 1, epochs=20, num_workers=2) as loader:
        held = []
        for step, batch in enumerate(loader):
            held.append(batch.y)
            if step < 50:
                loader.reshard(step % 3, 3)
        gc.collect()
        assert loader.stats()["threads"] == 2
        assert all(0 <= int(value) < ROWS for part in held for value in part), "delivered batches remain valid"


def test_statistics_and_bad_samples_are_those_of_the_whole_run(tmp_path: Path) -> None:
    folder = tmp_path / "class"
    folder.mkdir()
    for i in range(40):
        (folder / f"{i:02}.npy").write_bytes(b"damaged")
        if i % 4 != 3:
            np.save(folder / f"{i:02}.npy", np.full(3, i))
    dataset = feedline.open(tmp_path, fields="class/{key}.npy")
    with dataset.loader(4, output="numpy", on_error="skip", rank=0, world_size=1) as loader:
        loop = iter(loader)
        next(loop)
        for _ in range(3):
            before = loader.stats()
            loader.reshard(0, 1)
            now = loader.stats()
            counters = ("batches", "samples", "bad_samples", "held_bytes_peak")
            assert [now[name] for name in counters] == [before[name] for name in counters]
            assert now["wall_s"] >= before["wall_s"]
            next(loop)
        count = 4 + len(list(loop))
        stats = loader.stats()
        assert (stats["batches"], stats["samples"], stats["bad_samples"]) == (count, 30, 10)
        assert stats["stages"]["consumer"]["items"] == count
        assert sorted(row.record or 0 for row in loader.errors) == list(range(3, 40, 4))
