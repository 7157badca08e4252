# SPDX-License-Identifier: Apache-2.0
"""The requests for opening a thousand shards: at most three concurrent requests per shard, or none if the index is
cached; it is then verified during the first epoch.
"""

from __future__ import annotations

import io
import tarfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import made_data
import pytest
from made_tfrecords import example, record
from range_server import RangeServer, serving
from running_processes import HANG_S

import feedline
from feedline.pack import foreign_indexes

_SHARDS = 1000
_AT_ONCE = 8  # number of concurrent requests: 32 are allowed
_FEW = 60  # for tests in which the number of shards does not matter


def _tar(key: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for suffix, data in (("jpg", b"no picture: nobody decodes it"), ("cls", b"3")):
            member = tarfile.TarInfo(f"{key}.{suffix}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    for i in range(_SHARDS):
        (folder / f"{i:03d}.tar").write_bytes(_tar(f"{i:06d}"))
    return folder


@pytest.fixture
def server(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with serving(shards) as running:
        yield running


def _requests_of(server: RangeServer, run: Callable[[], object]) -> tuple[Any, list[tuple[str, str]]]:
    before = len(server.requests)
    result = run()
    return result, server.requests[before:]


def _labels(dataset: feedline.Dataset, **options: Any) -> list[int]:
    """Reads one epoch of a rank."""
    with dataset.loader(10, output="numpy", num_workers=2, on_error="skip", **options) as loader:
        return [int(label) for batch in loader for label in batch.cls]


def _open(server: RangeServer, shards: int = _FEW, **options: Any) -> feedline.Dataset:
    return feedline.open(server.url(f"{{000..{shards - 1:03d}}}.tar"), fields=("cls",), **options)


@contextmanager
def _replaced(shards: Path, number: int) -> Iterator[None]:
    file = shards / f"{number:03d}.tar"
    whole = file.read_bytes()
    try:
        file.write_bytes(_tar("another"))
        yield
    finally:
        file.write_bytes(whole)


def test_opening_takes_few_requests_a_shard_side_by_side_and_none_with_a_cached_index(server: RangeServer) -> None:
    together = threading.Barrier(_AT_ONCE)
    first = set(range(_AT_ONCE))

    def wait_for_others(number: int, path: str) -> str:
        if number in first:
            together.wait(HANG_S)  # fails if requests arrive one by one
        return ""

    server.fault = wait_for_others
    dataset, cold = _requests_of(server, lambda: _open(server, _SHARDS))
    assert len(dataset) == _SHARDS
    assert not together.broken
    asked = Counter(path for path, _ in cold)
    assert len(asked) == _SHARDS
    assert max(asked.values()) <= 3
    again, warm = _requests_of(server, lambda: _open(server, _SHARDS))
    assert warm == []
    assert (again.fingerprint, again.classes) == (dataset.fingerprint, dataset.classes)
    asking, asked_again = _requests_of(server, lambda: _open(server, _SHARDS, listing_age=0))
    assert Counter(path for path, _ in asked_again) == dict.fromkeys(asked, 1), "the version that the index is of"
    assert asking.fingerprint == dataset.fingerprint


def test_an_index_of_dali_takes_the_place_of_a_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = [(f"{i:05d}.{end}", data) for i in range(1200) for end, data in (("bin", bytes(20_000)), ("cls", b"7"))]
    (tmp_path / "served").mkdir()
    made_data.write_tar(tmp_path / "served/x.tar", members)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked = {}
    with serving(tmp_path / "served") as server:
        for with_index in (False, True):
            if with_index:
                foreign_indexes.write(str(tmp_path / "served/x.tar"), "dali")
            server.requests.clear()
            dataset = feedline.open(server.url("x.tar"), fields=("bin", "cls"), index=tmp_path / str(with_index))
            spans = [span.removeprefix("bytes=").split("-") for path, span in server.requests if path == "/x.tar"]
            asked[with_index] = sum(int(end) + 1 - int(begin) for begin, end in spans)
            assert ("used DALI's indexes" in dataset.explain()) == with_index
            with dataset.loader(400, output="numpy", seed=0) as loader:
                assert [batch.cls.tolist() for batch in loader] == [[7] * 400] * 3
    assert asked[True] < 300_000 < 20_000_000 < asked[False], "bytes of the shard that opening takes"


def test_the_first_epoch_asks_once_for_each_shard_that_was_not_asked_for(server: RangeServer) -> None:
    _open(server, _SHARDS)
    dataset = _open(server, _SHARDS)
    labels, first = _requests_of(server, lambda: _labels(dataset))
    assert labels == [3] * _SHARDS
    questions = Counter(path for path, asked in first if asked == "bytes=0-0")
    assert questions == {f"/{i:03d}.tar": 1 for i in range(_SHARDS)}
    _, second = _requests_of(server, lambda: _labels(dataset))
    assert not [path for path, asked in second if asked == "bytes=0-0"], "all are known"


def test_a_shard_that_changed_is_named_to_ranks_that_read_nothing_of_it_and_reindexed(
    server: RangeServer, shards: Path
) -> None:
    before = _open(server)
    state = before.loader(10, output="numpy").state_dict()
    with _replaced(shards, 51):
        stale = _open(server)
        assert stale.fingerprint == before.fingerprint, "nobody was asked"
        # the first 10 of 20 samples belong to this rank, and 51 to another one; no sample is bad
        with pytest.raises(
            feedline.StorageError, match=r"changed between index and read.*open the dataset again"
        ) as it:
            _labels(stale, rank=0, world_size=2)
        assert it.value.shard == server.url("051.tar")
        after, again = _requests_of(server, lambda: _open(server))
        assert {path for path, asked in again if asked != "bytes=0-0"} == {"/051.tar"}, "the others are as they were"
        assert after.fingerprint != before.fingerprint
        assert len(_labels(after)) == _FEW
        with pytest.raises(feedline.ConfigError, match="from another dataset"):
            after.loader(10, output="numpy").load_state_dict(state)


def test_a_changed_shard_is_never_other_data_and_the_next_opening_knows(server: RangeServer, shards: Path) -> None:
    before = _open(server)
    with _replaced(shards, 17):
        stale = _open(server)
        with pytest.raises(feedline.StorageError, match="changed between index and read"):
            stale[17]
        assert int(stale[16].cls) == 3
        assert _open(server).fingerprint != before.fingerprint
    _open(server, listing_age=0)
    (shards / "018.tar").rename(shards / "gone")
    try:
        with pytest.raises(feedline.StorageError, match=r"404 Not Found.*018\.tar"):
            _labels(_open(server))
        with pytest.raises(feedline.StorageError, match=r"404 Not Found.*018\.tar"):
            _open(server)
    finally:
        (shards / "gone").rename(shards / "018.tar")


def test_whether_a_shard_changed_is_asked_past_its_copy_and_in_mixtures(
    server: RangeServer, shards: Path, tmp_path: Path
) -> None:
    def opened() -> feedline.Dataset:
        return feedline.open(server.url("{000..003}.tar"), fields=("cls",), cache=tmp_path / "copies")

    assert _labels(opened()) == [3] * 4
    dataset = opened()
    _, requests = _requests_of(server, lambda: _labels(dataset))
    assert sorted(requests) == [(f"/00{i}.tar", "bytes=0-0") for i in range(4)], "samples come from copies"
    with _replaced(shards, 2):
        with pytest.raises(feedline.StorageError, match="changed between index and read"):
            _labels(feedline.mix([feedline.open(shards / "000.tar", fields=("cls",)), opened()]))
        assert _labels(opened()) == [3] * 4, "its index is of the other one now"


def test_tfrecords_are_opened_by_their_indexes_too(server: RangeServer, shards: Path) -> None:
    """Except for the first records, which show the fields: one request for all of them."""
    names = [f"{i:03d}.tfrecord" for i in range(_FEW)]

    def written(i: int, kind: int) -> bytes:
        return b"".join(record(example({"kind": kind, "shard": i})) for _ in range(40))

    def opened(**options: Any) -> feedline.Dataset:
        return feedline.open(server.url(f"{{000..{_FEW - 1:03d}}}.tfrecord"), fields=("kind", "shard"), **options)

    def kinds(dataset: feedline.Dataset, **options: Any) -> list[int]:
        with dataset.loader(100, output="numpy", num_workers=2, **options) as loader:
            return [int(kind) for batch in loader for kind in batch.kind]

    for i, name in enumerate(names):
        (shards / name).write_bytes(written(i, 3))
    before = opened()
    dataset, warm = _requests_of(server, opened)
    assert [path for path, _ in warm] == ["/000.tfrecord"]
    assert (dataset.fingerprint, len(dataset)) == (before.fingerprint, 40 * _FEW)
    got, first = _requests_of(server, lambda: kinds(dataset))
    assert got == [3] * 40 * _FEW
    assert Counter(path for path, asked in first if asked == "bytes=0-0") == {f"/{name}": 1 for name in names}
    _, asked = _requests_of(server, lambda: opened(listing_age=0))
    assert {path for path, _ in asked} == {f"/{name}" for name in names}
    (shards / names[51]).write_bytes(written(51, 5))
    with pytest.raises(feedline.StorageError, match="changed between index and read") as it:
        kinds(opened(), rank=0, world_size=_FEW)  # which reads nothing from it
    assert it.value.shard == server.url(names[51])
    after, again = _requests_of(server, opened)
    asked_for = {path for path, asked in again if asked != "bytes=0-0"}  # which the previous loader had in flight
    assert {path for path in asked_for if path.endswith(".tfrecord")} == {"/000.tfrecord", f"/{names[51]}"}
    assert all(path.startswith(("/000.", "/051.")) for path in asked_for), "it alone is indexed anew"
    assert Counter(kinds(after)) == {3: 40 * (_FEW - 1), 5: 40}


def test_a_server_that_is_gone_is_missed_by_reads_alone(shards: Path, server: RangeServer) -> None:
    source = server.url("{000..009}.tar")
    expected = len(feedline.open(source, fields=("cls",)))

    def break_off(number: int, path: str) -> str:
        raise ConnectionAbortedError  # of a connection that is reused

    server.fault = break_off
    server.shutdown()
    server.server_close()
    dataset = feedline.open(source, fields=("cls",))
    assert len(dataset) == expected
    with pytest.raises(feedline.StorageError, match=f"127.0.0.1:{server.server_address[1]}") as caught:
        dataset[3]
    assert "Input/output error" not in str(caught.value), "said twice"
    with pytest.raises(feedline.StorageError, match="cannot check whether the shard has changed"):
        _labels(dataset)
    assert len(feedline.open(source, fields=("cls",))) == expected, "which says nothing about the indexes"


def test_with_listing_age_0_a_shard_that_was_replaced_is_reindexed_at_once(server: RangeServer, shards: Path) -> None:
    before = _open(server)
    with _replaced(shards, 51):
        after, requests = _requests_of(server, lambda: _open(server, listing_age=0))
    assert after.fingerprint != before.fingerprint
    assert [path for path, count in Counter(path for path, _ in requests).items() if count > 1] == ["/051.tar"]
