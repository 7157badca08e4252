# SPDX-License-Identifier: Apache-2.0
"""``file://`` URLs are accepted for every source, and are equivalent to their paths."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import made_data
import numpy as np
import pytest

import feedline
from feedline import packing
from feedline.machine.storage import local_path, storage_facts

COMMAND = (sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())")


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder whose name must be escaped in a URL."""
    path = tmp_path / "a b%20ü#1"
    path.mkdir()
    return path


def url(path: Path, host: str = "") -> str:
    return f"file://{host}{quote(str(path))}"


def rows(data: feedline.Dataset) -> list[Any]:
    return [[np.asarray(value).tolist() for value in row] for row in data.center_crop(8)]


@pytest.mark.parametrize("host", ["", "localhost"])
def test_a_folder_and_tars_open_by_their_urls(odd: Path, host: str) -> None:
    root = made_data.make_folder(odd / "train", 2)
    shards = made_data.make_tars(root, odd / "shards", 2)
    expected = rows(feedline.open(root))
    by_url = feedline.open(url(root, host))
    assert by_url.source == url(root, host), "named as it was written"
    assert rows(by_url) == expected
    assert by_url.fingerprint == feedline.open(root).fingerprint
    tars = feedline.open(shards)
    assert rows(feedline.open([url(shard, host) for shard in shards])) == rows(tars)
    assert rows(feedline.open("::".join(url(shard, host) for shard in shards))) == rows(tars)
    braces = url(odd / "shards", host) + "/{000..001}.tar"
    assert rows(feedline.open(braces)) == rows(tars)
    assert feedline.inspect(url(root, host)).samples == len(expected)


def test_the_scheme_may_be_in_upper_case(tmp_path: Path) -> None:
    root = made_data.make_folder(tmp_path / "train", 1)
    assert len(feedline.open(f"FILE://{root}")) == len(feedline.open(root))


def test_fields_tokens_and_packing_take_urls(odd: Path, tmp_path: Path) -> None:
    (odd / "texts").mkdir()
    for key in "abc":
        (odd / f"texts/{key}.txt").write_text(key)
    assert [row[0] for row in feedline.open(url(odd), fields="texts/{key}.txt")] == ["a", "b", "c"]
    np.save(odd / "tokens.npy", np.arange(20, dtype=np.uint16))
    tokens = feedline.tokens(url(odd / "tokens.npy"), window=4)
    assert len(tokens) == len(feedline.tokens(odd / "tokens.npy", window=4)) > 0
    root = made_data.make_folder(odd / "train", 2)
    report = packing.pack(url(root), tmp_path / "out")
    assert report.samples == len(feedline.open(root))
    with pytest.raises(feedline.ConfigError, match="is inside the source"):
        packing.pack(url(root), root / "out")
    pixels = feedline.pack_pixels(feedline.open(url(root)), tmp_path / "all.pixels")
    assert rows(feedline.open(url(tmp_path / "all.pixels"))) == rows(pixels)


def test_a_cache_of_a_url_is_that_of_its_path(odd: Path) -> None:
    root = made_data.make_folder(odd / "train", 2)
    packed_path = odd / "kept.pixels"
    feedline.pack_pixels(feedline.open(url(root)), packed_path)
    with feedline.open(root).cache(packed_path).center_crop(8).loader(2, output="numpy") as loader:
        assert loader.stats()["cache"]["present"] == len(feedline.open(root))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("file://server/data/train", "a file URL has an absolute path and no host"),
        ("file://train", "a file URL has an absolute path and no host"),
        ("file:///data/%zz", "in a URL, % must be followed by two hexadecimal digits"),
        ("file:///data/%00", "in a URL, % must be followed by two hexadecimal digits"),
        ("sftp://bucket/train", "this version has no reader for sftp://, only for paths and file://"),
        ("fil:///data/train", "'fil' is not a known scheme"),
        ("https://host/a b.tar", "a URL must not contain spaces"),
        (["/a.tar", "sftp://host/b.tar"], "this version has no reader for sftp://"),
        (["/a.tar", "https://host/b.tar"], "is in a different storage"),
    ],
)
def test_what_names_another_place_is_refused(source: Any, says: str, tmp_path: Path) -> None:
    calls: list[Callable[[], Any]] = [lambda: feedline.open(source), lambda: feedline.inspect(source)]
    if isinstance(source, str):
        calls += [
            lambda: packing.pack(source, tmp_path / "out"),
            lambda: feedline.tokens(source, window=2, dtype="uint16"),
            lambda: feedline.tokens(source + ".npy", window=2),
        ]
    for call in calls:
        with pytest.raises(feedline.ConfigError) as caught:
            call()
        assert says in str(caught.value)
        assert not (tmp_path / "out").exists()


def test_verbs_take_urls(odd: Path, tmp_path: Path) -> None:
    root = made_data.make_folder(odd / "train", 3)

    def run(*arguments: object) -> Any:
        command = [*COMMAND, *map(str, arguments), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert run("inspect", url(root), "--show", tmp_path / "sheet.png")["samples"] == 9
    assert run("pack", url(root), tmp_path / "out")["samples"] == 9
    measured = run("bench", url(root), "--seconds", "0.2", "--batch-size", "2", "--size", "16")
    assert measured["data"]["samples"] == 9 if "data" in measured else measured
    refused = subprocess.run([*COMMAND, "inspect", "file://server/x"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "has an absolute path and no host" in refused.stderr


def test_facts_of_the_storage_are_those_of_the_path(odd: Path) -> None:
    assert local_path(url(odd)) == local_path(url(odd, "localhost")) == str(odd)
    assert local_path("file:///a::file:///b%20c::/d%20e") == "/a::/b c::/d%20e"
    assert local_path("file://server/a") == "file://server/a"
    assert storage_facts(url(odd)) == storage_facts(str(odd))
