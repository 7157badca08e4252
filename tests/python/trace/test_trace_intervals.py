# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of time intervals in `feedline trace`, compared with counting moment by moment."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from feedline.trace import intervals
from feedline.trace.nesting import CallTree

MOMENTS = 40
pairs = st.lists(st.tuples(st.integers(0, MOMENTS), st.integers(0, MOMENTS)), max_size=12)


def made(ends: list[tuple[int, int]]) -> intervals.Intervals:
    array = np.asarray(ends, np.int64).reshape(-1, 2)
    return intervals.union(array[:, 0], array[:, 1])


def moments(ends: list[tuple[int, int]]) -> set[int]:
    return {moment for begin, end in ends for moment in range(begin, end)}


def as_moments(when: intervals.Intervals) -> set[int]:
    return moments([(int(begin), int(end)) for begin, end in when])


@settings(deadline=None)
@given(pairs)
def test_a_union_covers_what_any_covers(one: list[tuple[int, int]]) -> None:
    found = made(one)
    assert as_moments(found) == moments(one)
    assert intervals.total(found) == len(moments(one))
    flat = found.ravel()
    assert (np.diff(flat) > 0).all(), "sorted, disjoint, not touching, none empty"


@settings(deadline=None)
@given(pairs, pairs)
def test_set_operations(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    a, b = made(one), made(other)
    assert as_moments(intervals.intersection(a, b)) == moments(one) & moments(other)
    assert as_moments(intervals.difference(a, b)) == moments(one) - moments(other)
    assert as_moments(intervals.join(a, b)) == moments(one) | moments(other)


@settings(deadline=None)
@given(pairs, st.integers(0, MOMENTS), st.integers(0, MOMENTS))
def test_a_complement_is_within_its_window(one: list[tuple[int, int]], begin: int, end: int) -> None:
    assert as_moments(intervals.complement(made(one), begin, end)) == set(range(begin, end)) - moments(one)


@settings(deadline=None)
@given(pairs, pairs)
def test_what_is_covered_of_each_window(one: list[tuple[int, int]], windows: list[tuple[int, int]]) -> None:
    ordered = [(min(window), max(window)) for window in windows]
    found = intervals.covered_within(made(one), np.asarray(ordered, np.int64).reshape(-1, 2))
    assert found.tolist() == [len(moments(one) & set(range(*window))) for window in ordered]


@st.composite
def calls(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """Returns (thread, start, end, parent) of nested calls, as in a program."""
    found: list[tuple[int, int, int, int]] = []

    def fill(thread: int, begin: int, end: int, parent: int, depth: int) -> None:
        at = begin
        while depth < 4 and at < end - 1 and draw(st.booleans()):
            start = draw(st.integers(at, end - 1))
            stop = draw(st.integers(start + 1, end))
            if (start, stop) == (begin, end) and parent >= 0:
                break  # the same times as its caller's, so the caller cannot be determined
            found.append((thread, start, stop, parent))
            fill(thread, start, stop, len(found) - 1, depth + 1)
            at = stop

    for thread in range(2):
        fill(thread, 0, 60, -1, 0)
    return found


@settings(deadline=None)
@given(calls(), st.randoms(use_true_random=False))
def test_callers_are_found_from_times_alone(made_calls: list[tuple[int, int, int, int]], random: object) -> None:
    order = list(range(len(made_calls)))
    random.shuffle(order)  # type: ignore[attr-defined]
    rows = np.asarray([made_calls[i] for i in order], np.int64).reshape(-1, 4)
    tree = CallTree(rows[:, 0].astype(np.int32), rows[:, 1], rows[:, 2])
    parents = [order[parent] if parent >= 0 else -1 for parent in tree.parent.tolist()]
    assert parents == [made_calls[i][3] for i in order]
    own = tree.self_time()
    for row, i in enumerate(order):
        _, start, end, _ = made_calls[i]
        inside = sum(stop - begin for _, begin, stop, parent in made_calls if parent == i)
        assert own[row] == end - start - inside
    ones = np.ones(len(order), np.int64)
    below = dict(zip(order, tree.with_callees(ones).tolist(), strict=True))
    for i in range(len(made_calls)):
        assert below[i] == 1 + sum(below[j] for j in range(len(made_calls)) if made_calls[j][3] == i)
    for thread in range(2):
        for time in (0, 17, 59):
            innermost = tree.innermost_at(np.array([thread], np.int32), np.array([time]))[0]
            running = [order[call] for call in tree.callers(int(innermost))]
            truth = [i for i, (t, start, end, _) in enumerate(made_calls) if t == thread and start <= time < end]
            assert running == truth  # made_calls has callers first


def test_a_name_within_itself_counts_once() -> None:
    thread = np.zeros(4, np.int32)
    start, end = np.array([0, 1, 2, 11]), np.array([10, 9, 8, 12])
    tree = CallTree(thread, start, end)
    assert tree.outermost(np.array([5, 6, 5, 5], np.int32)).tolist() == [True, True, False, True]


def test_no_events_are_no_error() -> None:
    tree = CallTree(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert tree.innermost_at(np.zeros(1, np.int32), np.zeros(1, np.int64)).tolist() == [-1]
    assert tree.callers(-1) == []
    assert intervals.covered_within(intervals.EMPTY, np.array([[0, 5]])).tolist() == [0]
    assert intervals.total(intervals.EMPTY) == 0
