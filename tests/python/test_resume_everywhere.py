# SPDX-License-Identifier: Apache-2.0
"""Every source x every plan x 1, 2, 3, 4, 8 ranks x threads: interrupted at every step, all ranks together continue
like the uninterrupted run, sample for sample and byte for byte.

A global batch consists of the samples that all ranks deliver at one step, in the order of the ranks. As long as
batch_size x world_size stays the same, it must not depend on the number of ranks, so every run is compared with one
uninterrupted run of one rank.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import training

import feedline

GLOBAL_BATCH = 24
WORLD_SIZES = (1, 2, 3, 4, 8)
THREADS = (1, 2, 4)
EPOCHS = 2

# samples and bytes of one step, of all ranks
Step = tuple[list[int], bytes]

PLANS: dict[str, dict[str, Any]] = {
    "in order": {},
    "shuffled": {"shuffle": True},
    "shards": {"shuffle": "shards", "shuffle_window": 2},
    "buckets": {"shuffle": True, "buckets": 3},
}
RAGGED = ("ragged", "documents")
PHOTOS = ("folder", "tar", "tfrecord", "lmdb", "arrow", "parquet", "mds", "litdata")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, feedline.Dataset]:
    import made_annotations
    import made_arrow
    import made_data
    import made_litdata
    import made_lmdb
    import made_mds
    import made_parquet
    import made_tfrecords

    root = tmp_path_factory.mktemp("resume")
    folder = made_data.make_folder(root / "folder", per_class=21)
    tars = made_data.make_tars(folder, root / "tars", shards=5)
    rng = np.random.default_rng(1)
    files = []
    for i, length in enumerate((900, 340, 711, 5)):
        files.append(root / f"{i}.bin")
        rng.integers(0, 500, length, dtype=np.uint16).tofile(files[-1])
    x = rng.normal(size=(101, 5)).astype(np.float32)
    arrays = feedline.arrays(x=x, y=np.arange(101))
    lengths = rng.integers(1, 40, 101)
    ragged = feedline.ragged(rng.normal(size=(int(lengths.sum()), 2)).astype(np.float32), lengths=lengths)
    text = rng.integers(1, 500, 2200, dtype=np.uint16)
    text[rng.integers(0, 2200, 100)] = 0
    text.tofile(root / "text.bin")
    documents = {"window": 24, "dtype": "uint16", "separator": 0}
    return {
        "folder": training(feedline.open(folder), 8),
        "tar": training(feedline.open(tars), 8),
        "tfrecord": training(feedline.open(made_tfrecords.of_folder(folder, root / "records", shards=5)), 8),
        "lmdb": training(feedline.open(made_lmdb.of_folder(folder, root / "lmdb")), 8),
        "coco": feedline.open(made_annotations.coco(root / "coco", 63)).random_horizontal_flip().resize((8, 8)),
        "arrow": training(feedline.open(made_arrow.of_folder(folder, root / "arrow", shards=5)), 8),
        "parquet": training(feedline.open(made_parquet.of_folder(folder, root / "parquet", shards=5)), 8),
        "mds": training(feedline.open(made_mds.of_folder(folder, root / "mds", shards=5)), 8),
        "litdata": training(feedline.open(made_litdata.of_folder(folder, root / "litdata", chunks=5)), 8),
        "arrays": arrays,
        "tokens": feedline.tokens(files, window=32, stride=20, dtype="uint16"),
        "ragged": feedline.arrays(x=ragged, y=np.arange(101)),
        "documents": feedline.tokens(root / "text.bin", documents="apart", **documents),
        "packed documents": feedline.tokens(root / "text.bin", **documents),
        "mixture": feedline.mix([arrays, feedline.arrays(x=x[:31], y=np.arange(31))], [3, 1], until="first"),
        "mixed images": feedline.mix([training(feedline.open(folder), 8)] * 2, [3, 1], samples=70),
    }


def loader(dataset: feedline.Dataset, rank: int, world_size: int, threads: int, **options: Any) -> feedline.Loader:
    return dataset.loader(
        GLOBAL_BATCH // world_size,
        rank=rank,
        world_size=world_size,
        num_workers=threads,
        seed=11,
        epochs=EPOCHS,
        output="numpy",
        **{"uneven": "exact", **options},
    )


def steps(dataset: feedline.Dataset, world_size: int, threads: int, state: Any = None, **options: Any) -> list[Step]:
    """Returns the samples of all ranks, step by step, from `state` on. Ranks without a batch at a step add nothing."""
    result: dict[tuple[int, int], Step] = {}  # epoch, and step since it was resumed
    for rank in range(world_size):
        with loader(dataset, rank, world_size, threads, **options) as one:
            if state is not None:
                one.load_state_dict(state)
            counts: Counter[int] = Counter()
            for batch in one:
                position = (one.epoch, counts[one.epoch])
                counts[one.epoch] += 1
                samples, data = result.get(position, ([], b""))
                rows = b"".join(row_bytes(batch, i) for i in range(len(batch[0])))
                result[position] = (samples + one.last_samples, data + rows)
    return [result[position] for position in sorted(result)]


def row_bytes(batch: Any, row: int) -> bytes:
    """Returns a sample without its padding, which depends on the longest sample in a rank's batch and differs from
    other ranks' batches.
    """
    parts = []
    for name, field in zip(batch._fields, batch, strict=True):
        lengths = getattr(batch, f"{name}_length", getattr(batch, "length", None))
        whole = lengths is None or field.ndim == 1
        parts.append(field[row].tobytes() if whole else field[row][: lengths[row]].tobytes())
    return b"".join(parts)


def epoch_of(dataset: feedline.Dataset, **options: Any) -> int:
    """Returns the number of steps of an epoch."""
    with loader(dataset, 0, 1, 1, **options) as one:
        return len(one) // EPOCHS


def states_of_ranks(dataset: feedline.Dataset, world_size: int, threads: int, **options: Any) -> list[list[Any]]:
    """Returns for every rank the state before the first step, and after every step."""
    result = []
    for rank in range(world_size):
        with loader(dataset, rank, world_size, threads, **options) as one:
            states = [json.dumps(one.state_dict())]
            for _ in one:
                states.append(json.dumps(one.state_dict()))
        assert all(len(state) < 1024 for state in states)
        result.append(states)
    return result


def as_one_sequence(found: list[Step], wanted: list[Step], where: str) -> None:
    """Compares sample for sample, and also the steps if ranks cannot shift them against each other."""
    assert [s for samples, _ in found for s in samples] == [s for samples, _ in wanted for s in samples], where
    assert b"".join(data for _, data in found) == b"".join(data for _, data in wanted), where


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    "source",
    [*PHOTOS, "coco", "arrays", "tokens", "packed documents", *RAGGED, "mixture", "mixed images"],
)
def test_every_step_of_every_plan(sources: dict[str, feedline.Dataset], source: str, plan: str) -> None:
    dataset, options = sources[source], {**PLANS[plan], "uneven": "drop", "drop_last": True}
    if source.startswith("mix") and plan == "shards":
        with pytest.raises(feedline.ConfigError, match="mixture"):
            loader(dataset, 0, 1, 1, **options)
        return
    if plan == "buckets" and source not in RAGGED:
        with pytest.raises(feedline.ConfigError, match="length"):
            loader(dataset, 0, 1, 1, **options)
        return
    whole = steps(dataset, 1, 2, **options)
    assert len(whole) > EPOCHS
    for turn, world_size in enumerate(WORLD_SIZES):
        threads = THREADS[turn % len(THREADS)]
        assert steps(dataset, world_size, threads, **options) == whole, f"{world_size} ranks"
        per_rank = states_of_ranks(dataset, world_size, threads, **options)
        assert all(states == per_rank[0] for states in per_rank), "ranks disagree on where they stand"
        for step, state in enumerate(per_rank[0]):
            other = WORLD_SIZES[(turn + step) % len(WORLD_SIZES)]
            # the rest of the current epoch, and EPOCHS - 1 more: as many as are known
            found = steps(dataset, other, THREADS[step % len(THREADS)], json.loads(state), **options)
            rest = whole[step:]
            assert found[: len(rest)] == rest, f"{world_size} ranks interrupted at step {step}, resumed on {other}"


@pytest.mark.parametrize("uneven", ["pad", "exact", "drop"])
@pytest.mark.parametrize("source", ["arrays", "tokens", "mixture"])
def test_remainders_too(sources: dict[str, feedline.Dataset], source: str, uneven: str) -> None:
    """With a remainder: the same number of ranks continues with the same batches."""
    dataset, options = sources[source], {"shuffle": True, "uneven": uneven}
    for turn, world_size in enumerate(WORLD_SIZES):
        threads = THREADS[turn % len(THREADS)]
        whole = steps(dataset, world_size, threads, **options)
        epoch = epoch_of(dataset, **options)
        if uneven == "exact":
            seen = Counter(s for samples, _ in whole[:epoch] for s in samples)
            if source != "mixture":
                assert seen == Counter(range(len(dataset)))
        for step, state in enumerate(states_of_ranks(dataset, world_size, threads, **options)[0]):
            found = steps(dataset, world_size, THREADS[step % len(THREADS)], json.loads(state), **options)
            rest = whole[step:]
            assert found[: len(rest)] == rest, f"{world_size} ranks, step {step}"
            if uneven == "exact":
                others = [number for number in (1, 3, 8) if number != world_size]
                other = others[step % len(others)]
                moved = steps(dataset, other, 2, json.loads(state), **options)
                as_one_sequence(moved[: len(rest)], rest, f"{world_size} ranks, step {step}, on {other}")


@pytest.mark.parametrize("source", ["folder", "arrays"])
def test_resumes_of_resumes_with_everything_else_changed(
    sources: dict[str, feedline.Dataset], source: str, tmp_path: Path
) -> None:
    """A series of runs of a few steps, each with other ranks, threads and batch size: every sample once."""
    dataset = sources[source]
    rng = np.random.default_rng(5)
    with dataset.loader(7, shuffle=True, seed=11, epochs=1, output="numpy") as one:
        order = [sample for _ in one for sample in one.last_samples]
    for _ in range(20):
        seen: list[int] = []
        state: Any = None
        while len(seen) < len(order):
            world_size = int(rng.choice(WORLD_SIZES))
            batch_size, threads = int(rng.integers(1, 9)), int(rng.integers(1, 4))
            count = int(rng.integers(1, 4))
            delivered: list[list[list[int]]] = []
            states = []
            for rank in range(world_size):
                options = {"rank": rank, "world_size": world_size, "uneven": "exact", "num_workers": threads}
                with dataset.loader(batch_size, shuffle=True, seed=11, epochs=1, output="numpy", **options) as one:
                    if state is not None:
                        one.load_state_dict(state)
                    mine = []
                    for _, _batch in zip(range(count), one, strict=False):
                        mine.append(one.last_samples)
                    delivered.append(mine)
                    states.append(one.state_dict())
            steps_done = max(map(len, delivered))
            seen += [s for step in range(steps_done) for mine in delivered if step < len(mine) for s in mine[step]]
            state = states[0]  # no other rank is ahead of rank 0
        assert seen == order
