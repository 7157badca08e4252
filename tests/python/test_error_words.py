# SPDX-License-Identifier: Apache-2.0
"""What an error says: what was given, where, and the next step."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

import feedline


def said(call, kind: type[feedline.Error] = feedline.ConfigError) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/no/such/folder", ""),
        ("no_such_folder", ""),
        ("~/imagenet/train", " (~ is not expanded)"),
    ],
)
def test_what_is_not_there_is_named(path: str, hint: str) -> None:
    with pytest.raises(feedline.StorageError) as caught:
        feedline.open(path)
    assert str(caught.value).startswith(f"no such file or folder: {path}{hint} [")
    assert caught.value.errno == errno.ENOENT


def test_a_pattern_that_matches_nothing_is_named() -> None:
    with pytest.raises(
        feedline.ConfigError, match=r"no file matches '/no/such/\*\.tar': there is no folder '/no/such'"
    ):
        feedline.open("/no/such/*.tar")


@pytest.mark.parametrize("path", ["sftp://bucket/train", "sftp://example.org/train.tar"])
def test_a_url_is_named_as_what_this_version_does_not_read(path: str) -> None:
    for call in (lambda: feedline.open(path), lambda: feedline.tokens(path, window=2, dtype="uint16")):
        words = said(call)
        assert words.startswith(f"open: {path!r}: this version has no reader for {path.split(':')[0]}://")
        assert "copy or mount the data, and open the copy; or install" in words
        assert "pip install" in words


def test_of_several_shards_the_one_that_is_missing_is_named(tmp_path: Path) -> None:
    words = said(lambda: feedline.open(f"{tmp_path}/{{000..002}}.tar"), feedline.StorageError)
    assert words.startswith(f"no such file or folder: {tmp_path}/000.tar [")


def test_what_may_not_be_looked_at_reports_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    words = said(lambda: feedline.open(tmp_path / "file" / "inside"), feedline.StorageError)
    assert "Not a directory" in words and "stat" not in words.split("[")[0]


def test_tokens_that_are_not_there_are_named(tmp_path: Path) -> None:
    for name in ("none.bin", "none.npy"):
        path = tmp_path / name
        words = said(lambda path=path: feedline.tokens(path, window=2, dtype="uint16"), feedline.StorageError)
        assert f"no such file or folder: {path}" in words


def test_a_token_outside_the_vocabulary_is_reported_with_its_value(tmp_path: Path) -> None:
    np.array([158, 3, 4, 5], np.uint16).tofile(tmp_path / "t.bin")
    words = said(
        lambda: feedline.tokens(tmp_path / "t.bin", window=2, dtype="uint16", vocabulary=100, check=True),
        feedline.DataError,
    )
    assert words.startswith("position 0 has token 158, but the vocabulary size is 100 [")


def test_mix_asks_for_a_list() -> None:
    one = feedline.arrays(x=np.zeros((4, 2), np.float32))
    assert said(lambda: feedline.mix(one, one)) == "mix: one dataset was given; pass a list: mix([a, b])"
    assert said(lambda: feedline.mix(7)) == "mix: a value of type int was given; pass a list: mix([a, b])"
    words = said(lambda: feedline.mix([one, "imagenet"]))
    assert words.startswith("mix: item 1 of the list is a str, not a feedline.Dataset; create one with feedline.open(")


@pytest.mark.parametrize("shuffle", ["shard", 1, None])
def test_shuffle_names_all_that_it_may_be(shuffle: object) -> None:
    dataset = feedline.arrays(x=np.zeros((4, 2), np.float32))
    words = said(lambda: dataset.loader(2, shuffle=shuffle))
    assert words == f'loader: shuffle must be True, False or "shards", not {shuffle!r}'
