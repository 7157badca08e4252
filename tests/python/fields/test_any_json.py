# SPDX-License-Identifier: Apache-2.0
"""Any text as a JSON field: the engine accepts the same texts as Python's json.loads, and returns the same values."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import feedline

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)

PUT = (b"", b",", b"[", b"}", b'"', b"\\", b"\\u12", b"0", b"-", b".", b"e", b" ", b"\n", b"\x00", b"\xff", b"NaN")


@st.composite
def texts(draw: Any) -> bytes:
    """JSON as written, or with one change, so that many texts are nearly valid."""
    whole = json.dumps(draw(VALUES), ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    if draw(st.booleans()):
        return whole
    at = draw(st.integers(0, len(whole)))
    put = draw(st.sampled_from(PUT))
    return whole[:at] + put + whole[at + draw(st.integers(0, 2)) :]


def write(path: Path, documents: list[bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for number, document in enumerate(documents):
            member = tarfile.TarInfo(f"{number:04d}.json")
            member.size = len(document)
            tar.addfile(member, io.BytesIO(document))


def by_python(document: bytes) -> str | None:
    """Returns the value's repr, in which NaN equals itself; None if the text is not JSON."""
    try:
        return repr(json.loads(document.decode("utf-8")))
    except (ValueError, RecursionError):
        return None


@settings(max_examples=300)
@given(documents=st.lists(texts().filter(bool), min_size=1, max_size=12))
def test_what_python_takes_is_taken_and_nothing_else(tmp_path_factory: Any, documents: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("json") / "a.tar"
    write(path, documents)
    dataset = feedline.open(str(path), fields=("json",))
    for number, document in enumerate(documents):
        expected = by_python(document)
        try:
            found = repr(dataset[number][0])
        except feedline.DataError as error:
            assert expected is None, document
            assert error.key == f"{number:04d}" and error.stage == "decode"
        else:
            assert found == expected, document
