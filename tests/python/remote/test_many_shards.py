# SPDX-License-Identifier: Apache-2.0
"""What opening a thousand shards asks of a server: three requests a shard at most and side by side, one where the index
is kept; and nothing twice."""

from __future__ import annotations

import io
import tarfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from range_server import RangeServer, serving
from running_processes import HANG_S

import feedline

_SHARDS = 1000
_AT_ONCE = 8  # that must be under way together: 32 are allowed
_NAMES = f"{{000..{_SHARDS - 1:03d}}}.tar"


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


def _of_shards(server: RangeServer) -> Counter[str]:
    return Counter(path for path, _ in server.requests if "{" not in path)


def test_opening_takes_few_requests_a_shard_side_by_side_and_one_where_the_index_is_kept(server: RangeServer) -> None:
    together = threading.Barrier(_AT_ONCE)
    first = set(range(1, 1 + _AT_ONCE))  # number 0 asks for the name with its braces

    def wait_for_others(number: int, path: str) -> str:
        if number in first and "{" not in path:
            together.wait(HANG_S)  # broken where they come one by one
        return ""

    server.fault = wait_for_others
    dataset = feedline.open(server.url(_NAMES))
    assert len(dataset) == _SHARDS
    assert not together.broken
    cold = _of_shards(server)
    assert len(cold) == _SHARDS
    assert max(cold.values()) <= 3
    again = feedline.open(server.url(_NAMES))
    warm = _of_shards(server) - cold
    assert set(warm.values()) == {1}, "the version that the index is of"
    assert len(warm) == _SHARDS
    assert again.fingerprint == dataset.fingerprint


def test_a_shard_that_was_replaced_is_indexed_anew_and_the_others_are_not(
    server: RangeServer, shards: Path, tmp_path: Path
) -> None:
    before = feedline.open(server.url(_NAMES))
    asked = _of_shards(server)
    replaced = shards / "417.tar"
    whole = replaced.read_bytes()
    try:
        replaced.write_bytes(_tar("another"))
        after = feedline.open(server.url(_NAMES))
    finally:
        replaced.write_bytes(whole)
    assert after.fingerprint != before.fingerprint
    again = _of_shards(server) - asked
    assert [path for path, count in again.items() if count > 1] == ["/417.tar"]
