# SPDX-License-Identifier: Apache-2.0
"""Indexes and decompressed copies that Feedline stores: other versions, no disk space, several ranks at the same
time.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import made_data
import pytest

import feedline

FORMAT_AT = 8  # bytes before the format number, in all of these files


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/feedline"


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    folder = made_data.make_folder(tmp_path / "data", 3)
    return made_data.make_tars(folder, tmp_path)[0]


def zipped(shard: Path) -> Path:
    path = shard.with_name("zipped.tar.gz")
    path.write_bytes(gzip.compress(shard.read_bytes()))
    return path


def make_foreign(file: Path) -> None:
    bytes_of = bytearray(file.read_bytes())
    bytes_of[FORMAT_AT] ^= 0x40
    file.write_bytes(bytes_of)


def test_an_index_of_another_version_is_rebuilt_and_reported_once(shard: Path) -> None:
    samples = len(feedline.open(shard))
    index = shard.parent / ".feedline" / (shard.name + ".feedline-index")
    ours = index.read_bytes()
    assert "another version" not in feedline.open(shard).explain()
    make_foreign(index)
    opened = feedline.open(shard)
    assert len(opened) == samples
    assert (
        f"indexes in '{index.parent}' were written by another version of Feedline and are rebuilt" in opened.explain()
    )
    assert index.read_bytes() == ours
    assert "another version" not in feedline.open(shard).explain()


def test_a_plain_copy_of_another_version_is_rebuilt_and_reported_once(shard: Path, cache_folder: Path) -> None:
    path = zipped(shard)
    feedline.open(path)
    (origin,) = cache_folder.glob("plain/*.origin")
    ours = origin.read_bytes()
    make_foreign(origin)
    assert "another version of Feedline" in feedline.open(path).explain()
    assert origin.read_bytes() == ours
    assert "another version" not in feedline.open(path).explain()


def test_several_ranks_make_one_plain_copy(shard: Path, cache_folder: Path) -> None:
    program = "import sys, feedline; print(len(feedline.open(sys.argv[1])))"
    ranks = [
        subprocess.Popen([sys.executable, "-c", program, zipped(shard)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert {rank.communicate()[0] for rank in ranks} == {f"{len(feedline.open(shard))}\n"}
    assert len(list(cache_folder.glob("plain/*.tar"))) == 1
    assert not list(cache_folder.glob("**/*.unfinished"))


LIMITED = """
import resource, signal, sys, feedline
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))  # as a disk that is full after 64 bytes
try:
    print(feedline.open(sys.argv[1]).explain())
except feedline.StorageError as error:
    print("refused:", error)
"""


def test_without_room_what_can_continues_and_the_rest_reports_what_to_do(shard: Path, cache_folder: Path) -> None:
    def without_room(path: Path) -> str:
        done = subprocess.run([sys.executable, "-c", LIMITED, path], capture_output=True, text=True, check=True)
        return done.stdout

    assert "an index could not be stored and will be rebuilt next time: cannot write" in without_room(shard)
    assert not list(shard.parent.rglob("*.feedline-index"))
    refused = without_room(zipped(shard))
    assert refused.startswith("refused: cannot write the decompressed copy of")
    assert "make room in the cache folder, or set XDG_CACHE_HOME to another one" in refused
    assert not list(cache_folder.glob("**/*.unfinished"))


def test_a_shard_that_changed_after_it_was_opened_names_both_versions(shard: Path) -> None:
    opened = feedline.open(shard).center_crop(16)
    content = shard.read_bytes()
    shard.write_bytes(content + bytes(512))
    with pytest.raises(feedline.StorageError, match="changed between index and read") as caught:
        opened[0]
    for part in (f"{len(content)} bytes", f"{len(content) + 512} bytes", "open the dataset again"):
        assert part in str(caught.value)
