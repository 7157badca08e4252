# SPDX-License-Identifier: Apache-2.0
"""Every sample as often as promised, for any number of ranks; rank and world size from the environment."""

from __future__ import annotations

import sys
import types
from collections import Counter

import pytest

import feedline
from feedline.machine import ranks

SAMPLES = 21


def shares(
    dataset: feedline.Dataset, world_size: int, uneven: str, batch_size: int = 2, **options: bool
) -> list[list[list[int]]]:
    """Returns the samples of every batch of every rank."""
    result = []
    for rank in range(world_size):
        loader = dataset.loader(
            batch_size,
            rank=rank,
            world_size=world_size,
            uneven=uneven,
            seed=9,
            output="numpy",
            num_workers=1,
            **options,
        )
        with loader:
            result.append([loader.last_samples for _ in loader])
            assert len(loader) == len(result[-1])
    return result


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 5, 8, 21])
def test_every_sample_as_often_as_promised(train: feedline.Dataset, world_size: int, shuffle: bool) -> None:
    counts = {}
    for uneven in ("pad", "drop", "exact"):
        batches = shares(train, world_size, uneven, shuffle=shuffle)
        per_rank = [sum(map(len, rank)) for rank in batches]
        counts[uneven] = Counter(s for rank in batches for batch in rank for s in batch)
        if uneven == "exact":
            assert max(per_rank) - min(per_rank) <= 1
        else:
            assert len(set(per_rank)) == 1
            assert len({len(rank) for rank in batches}) == 1
    assert counts["exact"] == Counter(range(SAMPLES))
    assert set(counts["pad"]) == set(range(SAMPLES))
    assert sum(counts["pad"].values()) == -(-SAMPLES // world_size) * world_size
    assert max(counts["pad"].values()) <= 2
    assert set(counts["drop"].values()) <= {1}
    assert sum(counts["drop"].values()) == SAMPLES // world_size * world_size


def test_global_batches_do_not_depend_on_the_number_of_ranks(train: feedline.Dataset) -> None:
    """Two ranks with batches of 3 see the same samples per step as one rank with batches of 6."""
    one = shares(train, 1, "drop", batch_size=6, shuffle=True)[0]
    two = shares(train, 2, "drop", batch_size=3, shuffle=True)
    for b in range(3):
        assert sorted(one[b]) == sorted(two[0][b] + two[1][b])


def test_drop_last_over_ranks(train: feedline.Dataset) -> None:
    for uneven in ("pad", "drop", "exact"):
        batches = shares(train, 2, uneven, batch_size=4, drop_last=True)
        assert all(len(batch) == 4 for rank in batches for batch in rank)
        assert len({len(rank) for rank in batches}) == 1


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, None),
        ({"RANK": "3", "WORLD_SIZE": "8"}, (3, 8)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_STEP_ID": "0"}, (1, 2)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, None),  # a batch script that starts Python itself
        ({"PMI_RANK": "3", "PMI_SIZE": "4", "SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_STEP_ID": "1"}, (3, 4)),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, (2, 4)),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, (0, 2)),
        ({"RANK": "3", "WORLD_SIZE": "8", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, (3, 8)),
        ({"RANK": "0"}, None),
    ],
)
def test_launchers(variables: dict[str, str], wanted: tuple[int, int] | None) -> None:
    found = ranks.from_environment(variables)
    assert (found and found[:2]) == wanted


@pytest.mark.parametrize("variables", [{"RANK": "x", "WORLD_SIZE": "2"}, {"RANK": "2", "WORLD_SIZE": "2"}])
def test_launchers_with_nonsense(variables: dict[str, str]) -> None:
    with pytest.raises(feedline.ConfigError, match="RANK"):
        ranks.from_environment(variables)


def test_torch_distributed_comes_first_and_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = types.ModuleType("torch.distributed")
    fake.is_available = fake.is_initialized = lambda: True  # type: ignore[attr-defined]
    fake.get_rank, fake.get_world_size = lambda: 5, lambda: 6  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.distributed", fake)
    assert ranks.resolve(None, None) == (5, 6)
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "6")
    assert ranks.resolve(None, None) == (5, 6)
    monkeypatch.setenv("RANK", "4")
    with pytest.raises(feedline.ConfigError, match="has rank 5 of 6, but the launcher's variables have rank 4 of 6"):
        ranks.resolve(None, None)
    assert ranks.resolve(1, 3) == (1, 3)
    fake.is_initialized = lambda: False  # type: ignore[attr-defined]
    assert ranks.resolve(None, None) == (4, 6)


def test_a_loader_takes_the_launchers_rank(train: feedline.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with train.loader(7, output="numpy") as loader:
        assert "rank 1 of 3" in loader.explain()
        assert "over all ranks: 21 of 21 samples per epoch" in loader.explain()
        assert sum(len(batch.label) for batch in loader) == 7


@pytest.mark.parametrize(
    "pair",
    [
        {"rank": 0},
        {"world_size": 2},
        {"rank": 2, "world_size": 2},
        {"rank": -1, "world_size": 2},
        {"rank": 0.0, "world_size": 2},
    ],
)
def test_wrong_pairs(train: feedline.Dataset, pair: dict[str, int]) -> None:
    with pytest.raises(feedline.ConfigError, match="rank"):
        train.loader(4, **pair)


def test_rank_zero_logs_the_plan_once(train: feedline.Dataset, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="feedline")
    for rank in range(2):
        with train.loader(4, rank=rank, world_size=2, output="numpy") as loader:
            for _ in range(2):
                next(iter(loader))
    (record,) = caplog.records
    plan, shares = record.getMessage().split("; ")
    assert plan == "21 samples, sequential, rank 0 of 2: 3 batches of 4"
    assert shares == "over all ranks: 21 of 21 samples per epoch, 1 of them twice"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"uneven": "drop"}, "20 of 21 samples per epoch, 1 left out"),
        ({"uneven": "exact"}, "21 of 21 samples per epoch"),
        ({"uneven": "exact", "drop_last": True}, "16 of 21 samples per epoch, 5 left out"),
    ],
)
def test_explain_reports_what_is_left_out_and_what_comes_twice(train: feedline.Dataset, options, words) -> None:
    with train.loader(4, rank=0, world_size=2, output="numpy", **options) as loader:
        assert f"over all ranks: {words}\n" in loader.explain()
