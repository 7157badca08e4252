# SPDX-License-Identifier: Apache-2.0
"""The number of requests for training, counted by the server; the batches equal those of local files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest
from range_server import RangeServer, serving

import feedline

_PER_CLASS = 120  # three classes
_SHARDS = 3
# with the minimum number of samples per request: the less samples are shuffled, the closer are those needed next
_ORDERS: list[tuple[dict[str, Any], float]] = [
    ({"shuffle": False}, 8),
    ({"shuffle": "shards", "shuffle_window": 1}, 3),
    ({"shuffle": True}, 1.2),  # on a busy machine; 2 and more on an idle one
]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("requests")
    return made_data.make_tars(made_data.make_folder(folder / "photos", _PER_CLASS), folder / "tars", _SHARDS)


@pytest.fixture
def server(shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with serving(shards[0].parent) as running:
        yield running


def names(count: int = _SHARDS) -> str:
    return f"{{000..{count - 1:03d}}}.tar"


def batches(dataset: feedline.Dataset, **options: object) -> list[tuple[np.ndarray, ...]]:
    chain = dataset.random_resized_crop(32).random_horizontal_flip()
    with chain.loader(8, seed=5, output="numpy", num_workers=2, **options) as loader:
        return [tuple(np.array(field) for field in batch) for batch in loader]


def tar_requests(server: RangeServer) -> list[tuple[str, str]]:
    return [(path, asked) for path, asked in server.requests if path.endswith(".tar") and "{" not in path]


@pytest.mark.parametrize(("order", "joined"), _ORDERS, ids=["stored", "shards", "shuffled"])
def test_many_samples_come_by_few_requests(
    server: RangeServer, shards: list[Path], order: dict[str, Any], joined: float
) -> None:
    expected = batches(feedline.open(f"{shards[0].parent}/{names()}"), **order)
    dataset = feedline.open(server.url(names()))
    opened = len(server.requests)
    found = batches(dataset, **order)
    assert len(found) == len(expected) == 3 * _PER_CLASS // 8
    for one, other in zip(found, expected, strict=True):
        for field, own in zip(one, other, strict=True):
            np.testing.assert_array_equal(field, own)
    requests = server.requests[opened:]
    assert len(requests) <= 3 * _PER_CLASS / joined
    assert all(asked for _, asked in requests), "and all of them ranges"


def test_what_was_fetched_is_explained(server: RangeServer) -> None:
    dataset = feedline.open(server.url(names())).resize((32, 32))
    with dataset.loader(8, output="numpy") as loader:
        for _ in loader:
            pass
        assert "bytes per byte used" in str(loader.explain())


def test_a_rate_limit_changes_no_batch(
    server: RangeServer, shards: list[Path], tmp_path: Path, environment: dict[str, str]
) -> None:
    import json
    import subprocess
    import sys

    import read_digests
    from running_processes import HANG_S

    expected = read_digests.digest(f"{shards[0].parent}/{names()}")
    own = {**environment, "XDG_CACHE_HOME": str(tmp_path / "own"), "FEEDLINE_HTTP_REQUESTS_PER_S": "50"}
    done = subprocess.run(
        [sys.executable, read_digests.__file__, server.url(names())],
        env=own, capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected


def test_opening_again_is_no_request(server: RangeServer) -> None:
    first = feedline.open(server.url(names()))
    cold = tar_requests(server)
    assert len(cold) <= 3 * _SHARDS, "where an index is made of a shard of less than 8 MiB"
    again = feedline.open(server.url(names()))
    assert tar_requests(server) == cold
    assert again.fingerprint == first.fingerprint
