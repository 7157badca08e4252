# SPDX-License-Identifier: Apache-2.0
"""Traces are read event by event, complete or damaged, with little memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import made_traces
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import feedline
from feedline import trace
from feedline.trace import reader

EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5.25, "dur": 1.5, "args": {"a": [1]}}


def read_all(path: Path, chunk: int = 1 << 20) -> tuple[list[dict[str, Any]], reader.Reader]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_CHUNK", chunk)
        made = reader.Reader(path)
        return list(made.events()), made


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    st.lists(st.dictionaries(st.text(), json_values, max_size=4), max_size=6),
    st.dictionaries(st.text(), json_values, max_size=3),
    st.integers(1, 40),
    st.sampled_from([None, 1, "\t"]),
    st.booleans(),
)
def test_any_trace_reads_as_json_does_whatever_the_chunks(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[dict[str, Any]],
    header: dict[str, Any],
    chunk: int,
    indent: int | str | None,
    ascii_only: bool,
) -> None:
    header.pop("traceEvents", None)
    whole = {**header, "traceEvents": events, "last": [1, {"x": 2.5}]}
    text = json.dumps(whole, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    path = write(tmp_path_factory.mktemp("any") / "trace.json", text)
    found, made = read_all(path, chunk)
    assert made.damage == []
    assert made.complete
    if b"\xed" not in text:  # lone surrogates are not valid UTF-8
        assert found == events
        assert made.header == {key: value for key, value in whole.items() if key != "traceEvents"}


@pytest.mark.parametrize("packed", [False, True])
def test_a_list_alone_is_a_trace_and_so_are_gzip_members(tmp_path: Path, packed: bool) -> None:
    text = json.dumps([EVENT] * 3).encode()
    data = gzip.compress(text[:50]) + gzip.compress(text[50:]) if packed else text
    found, made = read_all(write(tmp_path / "trace.json", data))
    assert found == [EVENT] * 3
    assert made.damage == []


@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_cut_anywhere_gives_the_events_before_the_cut(tmp_path: Path, packed: bool) -> None:
    whole = made_traces.loop(steps=1, kernels=3)
    text = json.dumps({**whole.header, "traceEvents": whole.events}, indent=1).encode()
    ends = [text.index(b'"dur": %s' % json.dumps(e["dur"]).encode()) for e in whole.events[:1]]
    for cut in range(ends[0], len(text) - 3, 97):
        data = gzip.compress(text)[: cut * len(gzip.compress(text)) // len(text)] if packed else text[:cut]
        try:
            found, made = read_all(write(tmp_path / "trace.json", data), 128)
        except feedline.DataError:
            assert packed or b"traceEvents" not in text[:cut]
            continue
        assert found == whole.events[: len(found)]
        assert made.damage, "a cut file is said to be cut"
        assert not made.complete
        if not packed:
            assert len(found) >= text[:cut].count(b"\n  }\n") - 1


def test_damage_within_costs_the_damaged_event(tmp_path: Path) -> None:
    events = [json.dumps({**EVENT, "ts": i}) for i in range(6)]
    events[2] = events[2].replace("5", "").replace('"dur": ', '"dur": ,')
    events[4] = events[4].replace('"pid"', '"memory bandwidth (GB/s)": inf, "pid"')
    found, made = read_all(write(tmp_path / "trace.json", '{"traceEvents": [' + ",".join(events) + "]}"))
    assert [event["ts"] for event in found if event.get("cat")] == [0, 1, 3, 5]
    assert len(made.damage) == 1
    assert "damaged events" in made.damage[0]


def test_control_characters_and_foreign_bytes_in_names_do_no_harm(tmp_path: Path) -> None:
    text = b'{"traceEvents": [{"ph": "X", "name": "a\nb\xff", "cat": "cpu_op", "ts": 1, "dur": 2}]}'
    found, made = read_all(write(tmp_path / "trace.json", text))
    assert found[0]["name"] == "a\nb\N{REPLACEMENT CHARACTER}"
    assert made.damage == []


@pytest.mark.parametrize("text", ["", "hello", "{}", '{"traceEvents": 3}', '{"a": [1, 2', "\x1f\x8b", "12"])
def test_what_is_no_trace_is_a_data_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(feedline.DataError, match="not a Chrome trace"):
        trace.read(write(tmp_path / "trace.json", text.encode("latin-1")))


def test_a_file_that_cannot_be_read_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(feedline.StorageError) as caught:
        trace.read(tmp_path / "none.json")
    assert caught.value.errno == 2
    with pytest.raises(feedline.StorageError):
        trace.read(tmp_path)


def test_odd_events_are_counted_and_left_out(tmp_path: Path) -> None:
    odd = [
        {**EVENT, "ts": "soon"},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm"},
        {**EVENT, "ts": None},
        {**EVENT, "ts": 1e300},
        {**EVENT, "args": "none"},
        {**EVENT, "dur": -5, "name": 7, "tid": None},
        {"ph": "X"},
        {},
    ]
    found = trace.read(write(tmp_path / "trace.json", json.dumps({"traceEvents": [*odd, 5, None, EVENT]})))
    assert found.unreadable == 4
    assert len(found["op"]) == 3
    assert (found["op"].end >= found["op"].start).all()
    assert found.damage == ["2 damaged events were skipped"]


def test_times_keep_their_nanoseconds(tmp_path: Path) -> None:
    """Microseconds since 1970 with decimals, as in old traces, and since the base time, as in new ones."""
    events = [{**EVENT, "ts": 4440041940301.331, "dur": 51828.732}, {**EVENT, "ts": 1623142623460111, "dur": 25}]
    ops = trace.read(write(tmp_path / "trace.json", json.dumps(events)))["op"]
    assert ops.start.tolist() == [4440041940301331, 1623142623460111000]
    assert (ops.end - ops.start).tolist() == [51828732, 25000]


def test_reading_needs_a_fraction_of_the_file(tmp_path: Path) -> None:
    path = made_traces.loop(steps=100, kernels=40, items=10, function="train.py(3): loop").write(
        tmp_path / "trace.json"
    )
    size = path.stat().st_size
    assert size > 4_000_000
    tracemalloc.start()
    found = trace.read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.events > 15_000
    assert peak < size / 3 + 4_000_000  # two chunks of text in addition to the columns
