# SPDX-License-Identifier: Apache-2.0
"""Lists that forked workers share: equal to the originals, and read without copies of pages."""

from __future__ import annotations

import gc
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import feedline
from feedline import ConfigError

VALUES = st.one_of(
    st.lists(st.text(st.characters(codec="utf-8"))),
    st.lists(st.binary()),
    st.lists(st.one_of(st.integers(), st.tuples(st.text(st.characters(codec="utf-8")), st.integers()), st.none())),
)


@given(values=VALUES, first=st.integers(-9, 9), last=st.integers(-9, 9), step=st.sampled_from([1, 2, -1, -3]))
def test_it_is_what_was_given(values, first, last, step):
    found = feedline.shared(iter(values))
    assert list(found) == values and found == values and len(found) == len(values)
    assert found[first:last:step] == values[first:last:step]
    assert all(found[at - len(values)] == values[at] for at in range(len(values)))
    assert pickle.loads(pickle.dumps(found)) == found == feedline.shared(values)
    assert found != [*values, None] and feedline.shared(found) is found
    for at in (len(values), -len(values) - 1):
        with pytest.raises(IndexError):
            found[at]


def test_paths_that_are_no_text_come_through():
    name = os.fsdecode(b"caf\xe9")
    assert list(feedline.shared([name, "b"])) == [name, "b"]
    assert list(feedline.shared([Path("a"), Path("b")])) == [Path("a"), Path("b")]


def test_what_cannot_be_kept_is_named():
    with pytest.raises(ConfigError, match="function"):
        feedline.shared([lambda: 0])


def private_bytes() -> int:
    with open("/proc/self/smaps_rollup") as lines:
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Private_Dirty", "Private_Clean")))


def grown_by_reading(values) -> int:
    """Returns the private bytes of a forked child after it has read all elements."""
    gc.collect()
    gc.freeze()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            before = private_bytes()
            for value in values:
                assert value
            os.write(writer, str(private_bytes() - before).encode())
        finally:  # after an exception the child would run the remaining tests
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        grown = int(answer.read())
    os.waitpid(pid, 0)
    return grown


def test_a_forked_worker_that_reads_it_copies_nothing():
    values = [f"folder/of/images/{number:09}.jpg" for number in range(200_000)]
    shared = feedline.shared(values)
    assert shared.nbytes < 10_000_000
    assert grown_by_reading(values) > 8_000_000, "a list's pages are copied"
    assert grown_by_reading(shared) < 2_000_000
