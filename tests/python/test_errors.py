# SPDX-License-Identifier: Apache-2.0
"""The exceptions: their bases, their attributes, and that both survive a pickle."""

from __future__ import annotations

import copy
import errno
import pickle

import pytest

import feedline

PLACE = {"dataset": "d", "shard": "s.tar", "key": "k", "record": 3, "offset": 1536, "stage": "decode"}
BASES = {
    feedline.Error: Exception,
    feedline.ConfigError: ValueError,
    feedline.DataError: RuntimeError,
    feedline.StorageError: OSError,
    feedline.StalledError: TimeoutError,
}


@pytest.mark.parametrize(("kind", "base"), BASES.items())
def test_bases_attributes_and_pickles(kind: type[feedline.Error], base: type[Exception]) -> None:
    error = kind("it broke [key k]", **PLACE)
    assert isinstance(error, base)
    assert isinstance(error, feedline.Error)
    for other in (error, copy.copy(error), *(pickle.loads(pickle.dumps(error, p)) for p in range(2, 6))):
        assert type(other) is kind
        assert str(other) == "it broke [key k]"
        assert {name: getattr(other, name) for name in PLACE} == PLACE


def test_a_storage_error_is_an_os_error() -> None:
    error = feedline.StorageError("cannot open", errno=errno.EACCES, **PLACE)
    for other in (error, pickle.loads(pickle.dumps(error))):
        assert other.errno == errno.EACCES
        assert other.filename == "s.tar"
        assert str(other) == "cannot open"
    assert feedline.StorageError("without a number").errno is None


def test_subclasses_and_notes_survive(tmp_path: object) -> None:
    error = feedline.DataError("broken", key="k")
    error.add_note("while resuming")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while resuming"]


def test_errors_of_the_engine_pickle() -> None:
    with pytest.raises(feedline.StorageError) as caught:
        feedline.open("/does/not/exist")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.errno == errno.ENOENT
    assert str(again) == str(caught.value)
    assert "/does/not/exist" in str(again)
    assert again.__dict__ == caught.value.__dict__
