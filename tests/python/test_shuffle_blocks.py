# SPDX-License-Identifier: Apache-2.0
"""shuffle="shards" over Parquet and Arrow files: the order of row groups and record batches, states, subsets, blocks
that are decompressed once, and the warning about orders that decompress them again and again."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_arrow
import made_parquet
import numpy as np
import pytest
from range_server import serving

import feedline
import feedline.testing
from feedline import _engine

FILES, BLOCKS, ROWS = 3, 4, 10  # blocks per file, rows per block
SAMPLES = FILES * BLOCKS * ROWS
KINDS = {"parquet": "row groups", "arrow": "record batches"}


def rows_of(first: int, count: int) -> list[dict[str, Any]]:
    return [{"n": i, "text": f"text {i}"} for i in range(first, first + count)]


def file_of(kind: str, rows: list[dict[str, Any]], per_block: int) -> bytes:
    if kind == "arrow":
        return made_arrow.stream(rows, per_batch=per_block)
    return made_parquet.file_of(rows, per_group=per_block)


def files_of(kind: str, folder: Path, per_block: int = ROWS) -> list[Path]:
    paths = []
    for i in range(FILES):
        paths.append(folder / f"{i}.{kind}")
        paths[-1].write_bytes(file_of(kind, rows_of(i * BLOCKS * ROWS, BLOCKS * ROWS), per_block))
    return paths


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def files(kind: str, tmp_path: Path) -> list[Path]:
    return files_of(kind, tmp_path)


def loader_of(dataset: feedline.Dataset, **options: Any) -> feedline.Loader:
    return dataset.loader(
        **{"batch_size": 7, "shuffle": "shards", "shuffle_window": 2, "seed": 5, "output": "numpy", **options}
    )


def epoch(dataset: feedline.Dataset, **options: Any) -> list[int]:
    with loader_of(dataset, **options) as loader:
        return [int(n) for batch in loader for n in batch.n]


def blocks_in_order(samples: list[int], window: int, per_block: int = ROWS) -> list[frozenset[int]]:
    """The blocks of each window, each of which must be read as a whole."""
    size = window * per_block
    groups = [samples[at : at + size] for at in range(0, len(samples), size)]
    found = []
    for group in groups:
        blocks = frozenset(sample // per_block for sample in group)
        assert sorted(group) == sorted(b * per_block + i for b in blocks for i in range(per_block)), group
        found.append(blocks)
    return found


@pytest.mark.parametrize("window", [1, 2, 3])
def test_blocks_of_all_files_are_permuted_and_those_of_a_window_are_mixed(files: list[Path], window: int) -> None:
    dataset = feedline.open(files)
    samples = epoch(dataset, shuffle_window=window)
    windows = blocks_in_order(samples, window)
    assert sorted(samples) == list(range(SAMPLES))
    assert [block for blocks in windows for block in sorted(blocks)] != list(range(FILES * BLOCKS))
    if window > 1:
        assert any(len({block // BLOCKS for block in blocks}) > 1 for blocks in windows), "from several files"
        first = [sample // ROWS for sample in samples[: window * ROWS]]
        assert first != sorted(first) and first != sorted(first, reverse=True), "samples of a window are mixed"


def test_the_order_is_that_of_the_seed_and_the_epoch(files: list[Path]) -> None:
    dataset = feedline.open(files)
    orders = []
    for seed in (5, 6):
        with loader_of(dataset, seed=seed) as loader:
            orders += [[int(n) for batch in loader for n in batch.n] for _ in range(2)]
    assert len(set(map(tuple, orders))) == 4
    assert epoch(dataset, num_workers=3, batch_size=1) == orders[0]
    ends = [ROWS * (i + 1) for i in range(FILES * BLOCKS)]
    for number, order in enumerate(orders):
        predicted = _engine.sample_order(
            samples=SAMPLES, shard_ends=ends, shuffle=True, shard_window=2, seed=5 + number // 2, epoch=number % 2,
            begin=0, count=SAMPLES,
        )  # fmt: skip
        assert order == predicted.tolist()


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_ranks_share_the_order(files: list[Path], world_size: int) -> None:
    dataset = feedline.open(files)
    whole = epoch(dataset, batch_size=12)
    steps: list[list[int]] = [[] for _ in range(SAMPLES // 12)]
    for rank in range(world_size):
        with loader_of(dataset, batch_size=12 // world_size, rank=rank, world_size=world_size) as loader:
            for step, batch in enumerate(loader):
                steps[step] += batch.n.tolist()
    assert [n for step in steps for n in step] == whole


def test_a_state_resumes_at_every_step_on_any_number_of_ranks(files: list[Path]) -> None:
    dataset = feedline.open(files)
    with loader_of(dataset, batch_size=12) as loader:
        states, samples = [loader.state_dict()], []
        for batch in loader:
            samples += batch.n.tolist()
            states.append(json.loads(json.dumps(loader.state_dict())))
    for step, state in enumerate(states[:-1]):
        world_size = step % 3 + 1
        rest: list[list[int]] = [[] for _ in range(SAMPLES // 12 - step)]
        for rank in range(world_size):
            with loader_of(dataset, batch_size=12 // world_size, rank=rank, world_size=world_size) as loader:
                loader.load_state_dict(state)
                for number, batch in enumerate(loader):
                    rest[number] += batch.n.tolist()
        assert [n for batch in rest for n in batch] == samples[step * 12 :], step


def earlier(state: dict[str, Any]) -> dict[str, Any]:
    """The state as it was saved when shuffle="shards" permuted files."""
    dataset = {name: value for name, value in state["dataset"].items() if name != "blocks"}
    return {**state, "version": 2, "dataset": dataset}


def test_a_state_with_an_order_of_files_is_refused(files: list[Path], kind: str) -> None:
    dataset = feedline.open(files)
    with loader_of(dataset) as loader:
        next(iter(loader))
        state = loader.state_dict()
        assert (state["version"], state["dataset"]["blocks"], state["dataset"]["shards"]) == (3, FILES * BLOCKS, FILES)
        with pytest.raises(feedline.ConfigError) as caught:
            loader.load_state_dict(earlier(state))
        for part in (f"it permutes {FILES * BLOCKS} row groups or record batches", "permuted 3 files", "set_epoch(0)"):
            assert part in str(caught.value)
        loader.load_state_dict(state)
    for shuffle in (True, False):  # their order is as before
        with loader_of(dataset, shuffle=shuffle) as loader:
            next(iter(loader))
            state = loader.state_dict()
            assert state == earlier(state)
            loader.load_state_dict(state)


def test_files_with_one_block_have_the_order_and_the_states_of_files(kind: str, tmp_path: Path) -> None:
    per_file = BLOCKS * ROWS
    dataset = feedline.open(files_of(kind, tmp_path, per_block=per_file))
    with loader_of(dataset) as loader:
        assert "3 shards permuted, 2 of them at a time" in loader.explain()
        samples = [int(n) for batch in loader for n in batch.n]
        state = loader.state_dict()
        assert state == earlier(state)
        loader.load_state_dict(state)
    ends = [per_file, 2 * per_file, 3 * per_file]
    predicted = _engine.sample_order(
        samples=SAMPLES, shard_ends=ends, shuffle=True, shard_window=2, seed=5, epoch=0, begin=0, count=SAMPLES
    )
    assert samples == predicted.tolist()


def test_explain_names_the_blocks(files: list[Path], kind: str) -> None:
    with loader_of(feedline.open(files)) as loader:
        assert f"12 {KINDS[kind]} permuted, 2 of them at a time" in loader.explain()
    with loader_of(feedline.open(files[0])) as loader:
        assert f"4 {KINDS[kind]} permuted" in loader.explain()


def test_subsets_have_the_blocks_of_their_samples(files: list[Path]) -> None:
    dataset = feedline.open(files)
    kept = [*range(5, 25), 60, *range(110, 120)]  # of blocks 0, 1, 2, 6 and 11
    samples = epoch(dataset.subset(kept), shuffle_window=1)
    assert sorted(samples) == kept
    blocks = [sample // ROWS for sample in samples]
    assert len([b for i, b in enumerate(blocks) if i == 0 or blocks[i - 1] != b]) == 5, "each block is read at a time"
    assert dataset.subset(kept)._engine.block_ends() == [5, 15, 20, 21, 31]
    assert sorted(epoch(dataset[10:33])) == list(range(10, 33))
    halves = dataset.split([0.5, 0.5], seed=1)
    assert sorted(n for half in halves for n in epoch(half)) == list(range(SAMPLES))
    with loader_of(dataset.subset(kept[::-1])) as loader:  # not in the order of the blocks
        assert "keyed permutation" in loader.explain()


def test_rows_that_are_left_out_belong_to_no_block(kind: str, tmp_path: Path) -> None:
    rows = rows_of(0, 40)
    for i in (3, *range(10, 20), 39):
        rows[i]["text"] = None
    path = tmp_path / f"x.{kind}"
    path.write_bytes(file_of(kind, rows, ROWS))
    dataset = feedline.open(path, fields=("n", "text:text"), missing="skip")
    assert dataset._engine.block_ends() == [9, 9, 19, 28]
    samples = epoch(dataset, shuffle_window=1)
    assert sorted(samples) == [i for i in range(40) if rows[i]["text"] is not None]
    blocks = [sample // ROWS for sample in samples]
    assert len([b for i, b in enumerate(blocks) if i == 0 or blocks[i - 1] != b]) == 3


def test_mixtures_are_shuffled_as_a_whole(files: list[Path]) -> None:
    dataset = feedline.open(files)
    with pytest.raises(feedline.ConfigError, match="a mixture is shuffled as a whole, not by shards"):
        loader_of(feedline.mix([dataset, dataset]))


def test_remote_files_have_the_order_of_local_ones(files: list[Path], tmp_path: Path) -> None:
    local = epoch(feedline.open(files))
    with serving(tmp_path) as server:
        urls = [server.url(path.name) for path in files]
        assert epoch(feedline.open(urls)) == local
        assert epoch(feedline.open(urls, cache=tmp_path / "cache")) == local


# ---- compressed blocks ----


@pytest.fixture
def compressed(kind: str, tmp_path: Path) -> tuple[Path, int]:
    """A file with 20 blocks of 50 rows, and the bytes of its texts."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow, which writes the tables, is not installed")
    import pyarrow.parquet as pq

    random = np.random.default_rng(0)
    texts = [random.bytes(300).hex() for _ in range(1000)]
    table = pa.table({"n": np.arange(1000), "text": texts})
    path = tmp_path / f"x.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, compression="zstd", row_group_size=50, use_dictionary=False)
    else:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=options) as out:
            out.write_table(table, max_chunksize=50)
    return path, sum(map(len, texts))


@pytest.fixture
def no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The cache in memory holds 4 of the 20 blocks, and the cache folder none."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    feedline.testing.force(block_cache_bytes=150_000)
    yield
    feedline.testing.force()


def warned(dataset: feedline.Dataset, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loader_of(dataset, **options).close()
    return [str(one.message) for one in caught]


def decompressed(loader: feedline.Loader) -> tuple[int, float]:
    """The number of blocks, and the bytes decompressed per byte delivered."""
    list(loader)
    blocks = loader.stats()["blocks"]
    return blocks["blocks"], blocks["bytes"] / blocks["delivered_bytes"]


def test_each_block_of_a_window_is_decompressed_once(compressed: tuple[Path, int], no_room: None, kind: str) -> None:
    fields = ("text:text",)
    with loader_of(feedline.open(compressed[0], fields=fields), shuffle_window=3, num_workers=1, epochs=1) as loader:
        assert decompressed(loader) == (20, pytest.approx(1, abs=0.02))
    with pytest.warns(UserWarning, match="decompressed per byte delivered"):
        loader = loader_of(feedline.open(compressed[0], fields=fields), shuffle=True)
    with loader:
        assert decompressed(loader)[1] > 20


def test_the_warning_names_the_cost_and_the_line_to_write(
    compressed: tuple[Path, int], no_room: None, kind: str
) -> None:
    dataset = feedline.open(compressed[0], fields=("text:text",))
    (text,) = warned(dataset, shuffle=True)
    found = re.fullmatch(
        r"loader: about (\d+) bytes will be decompressed per byte delivered: samples are read at random from "
        r'compressed blocks .*; pass shuffle="shards", shuffle_window=(\d), which reads \d (\w+ \w+) at a time',
        text,
    )
    assert found is not None, text
    assert found[3] == KINDS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with loader_of(dataset, shuffle=True) as loader:
            assert text.removeprefix("loader: ") in loader.explain()
            assert decompressed(loader)[1] == pytest.approx(int(found[1]), rel=0.25)
    assert warned(dataset, shuffle_window=int(found[2])) == []
    (text,) = warned(dataset, shuffle_window=15)
    assert re.search(rf"at a time, but only .*; pass shuffle_window={found[2]}, which", text)
    (text,) = warned(dataset, shuffle=False, weights=[1.0] * 1000)
    assert re.search(r"; set XDG_CACHE_HOME to a folder on a disk with \d+ MiB of free space$", text)
    assert len(warned(feedline.mix([dataset, dataset]), shuffle=True)) == 1


def test_without_random_reads_or_with_room_there_is_no_warning(
    compressed: tuple[Path, int], no_room: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = feedline.open(compressed[0], fields=("text:text",))
    assert warned(dataset, shuffle=False) == []
    assert warned(dataset[:150], shuffle=True) == [], "its blocks fit in memory"
    assert warned(feedline.open(compressed[0], fields=("n",)), shuffle=True) == [], "numbers fit in memory"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert warned(dataset, shuffle=True) == [], "the cache folder stores the blocks"
    feedline.testing.force()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert warned(feedline.open(compressed[0], fields=("text:text",)), shuffle=True) == []


def test_remote_blocks_of_a_window_are_decompressed_once(
    compressed: tuple[Path, int], no_room: None, tmp_path: Path
) -> None:
    with serving(tmp_path) as server:
        dataset = feedline.open(server.url(compressed[0].name), fields=("text:text",))
        with loader_of(dataset, shuffle_window=3, num_workers=1, epochs=1) as loader:
            assert decompressed(loader) == (20, pytest.approx(1, abs=0.02))
