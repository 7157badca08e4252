# SPDX-License-Identifier: Apache-2.0
"""``open(cache=...)``: copies of stored data, the same batches from them, and ``feedline cache``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest

import feedline

COMMAND = (sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())")
READ = """
import sys, hashlib, feedline, numpy as np
data = feedline.open(sys.argv[1].split("::"), cache=sys.argv[2], cache_limit="1 GiB").center_crop(8)
sums = hashlib.sha256()
for batch in data.loader(4, shuffle=True, output="numpy", num_workers=2):
    sums.update(np.ascontiguousarray(batch[0]).tobytes())
print(sums.hexdigest())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made_data.make_folder(tmp_path / "photos")


@pytest.fixture
def tars(folder: Path, tmp_path: Path) -> list[Path]:
    return made_data.make_tars(folder, tmp_path / "shards", 3)


@pytest.fixture
def cache_folder(tmp_path: Path) -> Path:
    return tmp_path / "local" / "cache"


def rows(data: feedline.Dataset) -> Iterator[np.ndarray]:
    for batch in data.center_crop(8).loader(4, shuffle=True, seed=3, output="numpy", num_workers=2):
        yield np.concatenate([np.asarray(value, np.float64).ravel() for value in batch])


def copies(cache_folder: Path) -> list[Path]:
    return sorted(cache_folder.rglob("*.object"))


def command(*arguments: object) -> tuple[int, Any]:
    ran = subprocess.run(
        [*COMMAND, "cache", *map(str, arguments), "--json"], capture_output=True, text=True, timeout=120, check=False
    )
    return ran.returncode, json.loads(ran.stdout) if ran.stdout.strip() else ran.stderr


@pytest.mark.parametrize("kind", ["folder", "tars"])
def test_batches_are_those_without_and_the_copies_are_the_objects(
    kind: str, folder: Path, tars: list[Path], cache_folder: Path
) -> None:
    source: Any = folder if kind == "folder" else tars
    plain = list(rows(feedline.open(source)))
    for _ in range(2):
        np.testing.assert_equal(list(rows(feedline.open(source, cache=cache_folder))), plain)
    stored = list(folder.glob("*/*.jpg")) if kind == "folder" else tars
    assert sorted(copy.read_bytes() for copy in copies(cache_folder)) == sorted(file.read_bytes() for file in stored)


def test_an_index_at_hand_opens_without_fetching(tars: list[Path], cache_folder: Path) -> None:
    plain = list(rows(feedline.open(tars)))  # leaves indexes next to the shards
    data = feedline.open(tars, cache=cache_folder)
    assert len(data) == 21 and not copies(cache_folder)
    np.testing.assert_equal(list(rows(data)), plain)
    assert len(copies(cache_folder)) == 3


def test_processes_share_the_copies(tars: list[Path], cache_folder: Path) -> None:
    names = "::".join(map(str, tars))
    running = [
        subprocess.Popen([sys.executable, "-c", READ, names, str(cache_folder)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert len({process.communicate(timeout=300)[0] for process in running}) == 1
    assert all(process.returncode == 0 for process in running)
    assert len(copies(cache_folder)) == 3


def test_what_has_no_room_is_read_without_and_explained(tars: list[Path], cache_folder: Path) -> None:
    plain = list(rows(feedline.open(tars)))
    data = feedline.open(tars, cache=cache_folder, cache_limit=4096).center_crop(8)
    loader = data.loader(4, shuffle=True, seed=3, output="numpy", num_workers=2)
    np.testing.assert_equal(
        [np.concatenate([np.asarray(value, np.float64).ravel() for value in batch]) for batch in loader], plain
    )
    assert "read without the cache" in loader.explain() and str(cache_folder) in loader.explain()
    assert not copies(cache_folder)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cache": ""}, "cache must be a folder"),
        ({"cache": 3}, "cache must be a folder"),
        ({"cache": "memory"}, "to cache decoded pixels, call"),
        ({"cache": "s3://bucket/cache"}, "is a URL"),
        ({"cache_limit": "1 GiB"}, "cache_limit requires cache, the folder for copies"),
        ({"cache": "c", "cache_limit": "0%"}, "more than 0%"),
        ({"cache": "c", "cache_limit": "101%"}, "no more than 100%"),
        ({"cache": "c", "cache_limit": "many"}, 'or pass a share of the disk, such as "50%"'),
        ({"cache": "c", "cache_limit": 0}, "cache_limit"),
    ],
)
def test_what_is_no_cache_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(feedline.ConfigError, match=words):
        feedline.open(folder, **arguments)
    assert not (tmp_path / "c").exists()


def test_a_folder_of_something_else_is_not_touched(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    with pytest.raises(feedline.ConfigError, match="contains other files"):
        feedline.open(folder, cache=folder)
    assert sorted(folder.rglob("*")) == before


def test_upkeep_by_the_command_line(tars: list[Path], cache_folder: Path) -> None:
    list(rows(feedline.open(tars, cache=cache_folder)))
    status, listed = command("ls", cache_folder)
    assert status == 0 and [found["name"] for found in listed["objects"]] == [str(tar) for tar in tars]
    assert [found["bytes"] for found in listed["objects"]] == [tar.stat().st_size for tar in tars]
    assert not any(found["in_use"] for found in listed["objects"])
    assert listed["disk_bytes"] >= sum(tar.stat().st_size for tar in tars)
    assert command("verify", cache_folder) == (0, {"path": str(cache_folder), "objects": 3, "damaged": []})

    damaged = copies(cache_folder)[0]
    content = bytearray(damaged.read_bytes())
    content[700] ^= 1
    damaged.write_bytes(content)
    status, verified = command("verify", cache_folder)
    assert status == 1 and len(verified["damaged"]) == 1 and "was removed" in verified["damaged"][0]["what"]
    assert not damaged.exists() and len(copies(cache_folder)) == 2

    limit = listed["disk_bytes"] // 2
    status, pruned = command("prune", cache_folder, "--limit", limit)
    assert status == 0 and pruned["removed"] == 1 and 0 < pruned["disk_bytes"] <= limit
    note = cache_folder / "objects" / "note.txt"
    note.write_text("a user's")
    status, cleared = command("clear", cache_folder)
    assert (status, cleared["removed"], cleared["disk_bytes"]) == (0, 1, 0)
    assert [path for path in cache_folder.rglob("*") if path.is_file()] == [note]
    status, said = command("ls", cache_folder)
    assert status == 2 and "is not a Feedline cache" in said


def test_what_is_being_read_stays(tars: list[Path], cache_folder: Path) -> None:
    data = feedline.open(tars[:1], cache=cache_folder)
    assert len(np.asarray(data.center_crop(8)[0][0])) == 3  # opens the shard, which stays open
    status, listed = command("ls", cache_folder)
    assert status == 0 and [found["in_use"] for found in listed["objects"]] == [True]
    status, cleared = command("clear", cache_folder)
    assert (status, cleared["removed"], cleared["in_use"]) == (1, 0, 1)
    del data
    assert command("clear", cache_folder)[0] == 0
    assert not cache_folder.exists() or not list(cache_folder.iterdir())
