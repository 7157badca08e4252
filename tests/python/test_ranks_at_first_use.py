# SPDX-License-Identifier: Apache-2.0
"""A loader's rank is decided at its first use and compared with torch.distributed at each epoch."""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running_processes import HANG_S

import feedline

dist = pytest.importorskip("torch.distributed")

ROWS = 64
MODULE_LEVEL = feedline.arrays(x=np.arange(ROWS)).loader(4, shuffle=True, seed=0, output="numpy")


def loader(**options: Any) -> feedline.Loader:
    return feedline.arrays(x=np.arange(ROWS)).loader(4, output="numpy", **{"seed": 0, **options})


def rows(batches: Any) -> list[int]:
    return [int(x) for batch in batches for x in batch.x]


class Group:
    """A simulated torch.distributed whose rank and world size a test changes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def begin(self, rank: int, size: int) -> None:
        for name, value in {"is_initialized": True, "get_rank": rank, "get_world_size": size}.items():
            self._monkeypatch.setattr(dist, name, lambda value=value: value)

    def end(self) -> None:
        self._monkeypatch.setattr(dist, "is_initialized", lambda: False)


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    return Group(monkeypatch)


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"shuffle": True, "uneven": "exact"}, {"epochs": 2}])
def test_the_group_that_begins_after_the_loader_was_made_counts(group: Group, options: dict[str, Any]) -> None:
    ours = loader(**options)
    group.begin(1, 2)
    assert len(ours) == 8 * options.get("epochs", 1)
    expected = rows(loader(rank=1, world_size=2, **options))
    assert rows(ours) == expected and len(expected) == ROWS // 2 * options.get("epochs", 1)


def test_a_length_that_changes_is_logged(group: Group, caplog: pytest.LogCaptureFixture) -> None:
    ours = loader()
    assert len(ours) == 16
    group.begin(0, 2)
    with caplog.at_level(logging.WARNING, logger="feedline"):
        assert len(ours) == 8 and len(ours) == 8
    assert [r.getMessage() for r in caplog.records] == [
        "len() of this loader was 16 as rank 0 of 1, and is now 8 as rank 0 of 2 according to torch.distributed"
    ]


def test_what_was_set_before_the_group_stays(group: Group) -> None:
    ours, state = loader(shuffle=True), loader(shuffle=True)
    begun = iter(state)
    next(begun), next(begun)
    ours.load_state_dict(state.state_dict())
    group.begin(0, 2)
    assert ours.state_dict() == state.state_dict()
    expected = loader(shuffle=True, rank=0, world_size=2)
    expected.load_state_dict(state.state_dict())
    assert rows(ours) == rows(expected)
    other = loader(shuffle=True)
    group.end()
    other.set_epoch(5)
    group.begin(0, 2)
    expected.set_epoch(5)
    assert other.epoch == 5 and rows(other) == rows(expected)


def test_ranks_that_change_between_epochs_are_an_error(group: Group) -> None:
    ours = loader()
    assert rows(ours) == list(range(ROWS))
    group.begin(1, 2)
    words = (
        "loader already has rank 0 of 1 (source: no launcher and no torch.distributed group), but torch.distributed "
        "now has rank 1 of 2; create the loader after init_process_group, or pass rank= and world_size="
    )
    for _ in range(2):
        with pytest.raises(feedline.ConfigError, match=re.escape(words)):
            iter(ours)
    assert len(ours) == 16, "as in the epochs that it has begun"
    made = loader()
    made.load_state_dict(ours.state_dict())
    assert made.epoch == 1 and len(rows(made)) == 32
    group.begin(1, 4)
    with pytest.raises(
        feedline.ConfigError, match=r"rank 1 of 2 \(source: torch.distributed\), but .* has rank 1 of 4"
    ):
        iter(made)
    group.end()
    assert len(rows(made)) == 32, "no group contradicts it"


def test_what_is_given_is_not_compared(group: Group) -> None:
    ours = loader(rank=0, world_size=1)
    assert len(rows(ours)) == ROWS
    group.begin(1, 2)
    assert len(rows(ours)) == ROWS


def test_the_launchers_variables_are_read_at_the_first_use(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = loader()
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert len(ours) == 4 and "rank 1 of 4" in ours.explain()
    assert len(rows(ours)) == 16
    group.begin(1, 4)
    assert len(rows(ours)) == 16


def test_samplers_follow_the_group(group: Group) -> None:
    buckets = feedline.BucketBatchSampler([1] * 8, 2, buckets=[1], shuffle=False)
    assert len(buckets) == 4
    group.begin(1, 2)
    assert (len(buckets), buckets.rank, buckets.num_replicas) == (2, 1, 2)
    assert sorted(index for batch in buckets for index in batch) == [1, 3, 5, 7]
    sampler = feedline.DistributedSampler(range(8), shuffle=False)
    assert list(sampler) == [1, 3, 5, 7]
    group.begin(1, 4)
    for one in (buckets, sampler):
        with pytest.raises(feedline.ConfigError, match="now has rank 1 of 4"):
            list(one)


def of_rank(rank: int, size: int, folder: str, ours: feedline.Loader | None, variables: bool) -> None:
    if variables:
        os.environ.update(WORLD_SIZE=str(size), LOCAL_RANK=str(rank), NODE_RANK="0")
    dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=size)
    ours = ours or MODULE_LEVEL
    found = [len(ours), *rows(ours), *rows(ours)]
    Path(folder, f"{rank}.txt").write_text(" ".join(map(str, found)))
    dist.barrier()
    dist.destroy_process_group()


def shared_out(folder: Path, size: int) -> None:
    found = [[int(x) for x in (folder / f"{rank}.txt").read_text().split()] for rank in range(size)]
    assert [share[0] for share in found] == [ROWS // size // 4] * size
    share = ROWS // size
    for first in (1, 1 + share):
        assert sorted(row for each in found for row in each[first : first + share]) == list(range(ROWS))


def started(method: str, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=target, args=(rank, *arguments)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(HANG_S)
    assert [process.exitcode for process in processes] == [0, 0]


def test_a_loader_at_module_level_under_mp_spawn(tmp_path: Path) -> None:
    torch_mp = pytest.importorskip("torch.multiprocessing")
    torch_mp.spawn(of_rank, (2, str(tmp_path), None, False), nprocs=2)
    shared_out(tmp_path, 2)


@pytest.mark.parametrize("variables", [False, True])
def test_a_loader_of_the_parent_in_forked_children(tmp_path: Path, variables: bool) -> None:
    """Like processes of notebook_launcher and Lightning's notebook strategy; len() was called before."""
    ours = loader(shuffle=True)
    assert len(ours) == 16
    started("fork", of_rank, (2, str(tmp_path), ours, variables))
    shared_out(tmp_path, 2)
