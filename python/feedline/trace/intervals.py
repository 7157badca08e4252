# SPDX-License-Identifier: Apache-2.0
"""Operations on sets of times as sorted, disjoint, half-open intervals: int64 arrays of shape (n, 2), in
nanoseconds.

All functions except :func:`union` require intervals in the form that :func:`union` returns.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Intervals: TypeAlias = NDArray[np.int64]
Times: TypeAlias = NDArray[np.int64]

EMPTY: Intervals = np.empty((0, 2), np.int64)


def union(start: Times, end: Times) -> Intervals:
    """Returns the union of the intervals [start, end). Empty and reversed intervals are ignored."""
    covers = end > start
    start, end = start[covers], end[covers]
    if not len(start):
        return EMPTY
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    begins = np.concatenate(([True], start[1:] > end[:-1]))  # adjacent intervals are merged
    ends = np.concatenate((begins[1:], [True]))
    return np.stack((start[begins], end[ends]), axis=1)


def total(intervals: Intervals) -> int:
    """Returns the total length in nanoseconds."""
    return int((intervals[:, 1] - intervals[:, 0]).sum())


def complement(intervals: Intervals, begin: int, end: int) -> Intervals:
    """Returns the parts of [begin, end) that the intervals do not cover."""
    edges = np.concatenate(([begin], intervals.ravel(), [end])).reshape(-1, 2)
    return union(np.clip(edges[:, 0], begin, end), np.clip(edges[:, 1], begin, end))


def intersection(one: Intervals, other: Intervals) -> Intervals:
    """Returns the intersection of two sets of intervals."""
    if not len(one) or not len(other):
        return EMPTY
    begin = int(min(one[0, 0], other[0, 0]))
    end = int(max(one[-1, 1], other[-1, 1]))
    return complement(join(complement(one, begin, end), complement(other, begin, end)), begin, end)


def join(*sets: Intervals) -> Intervals:
    """Returns the union of several sets of intervals."""
    every = np.concatenate((EMPTY, *sets))
    return union(every[:, 0], every[:, 1])


def difference(one: Intervals, other: Intervals) -> Intervals:
    """Returns the parts of `one` that `other` does not cover."""
    if not len(one):
        return EMPTY
    return intersection(one, complement(other, int(one[0, 0]), int(one[-1, 1])))


def covered_before(intervals: Intervals, at: Times) -> Times:
    """Returns the number of nanoseconds covered before each of the times `at`."""
    if not len(intervals):
        return np.zeros(len(at), np.int64)
    lengths = np.concatenate(([0], np.cumsum(intervals[:, 1] - intervals[:, 0])))
    index = np.searchsorted(intervals[:, 0], at, side="right")  # number of intervals that have begun
    over = np.maximum(intervals[np.maximum(index - 1, 0), 1] - at, 0)  # remaining part of the last interval
    return np.asarray(lengths[index] - np.where(index > 0, over, 0), np.int64)


def covered_within(intervals: Intervals, windows: Intervals) -> Times:
    """Returns the number of nanoseconds covered in each window. Windows may overlap and be in any order."""
    return covered_before(intervals, windows[:, 1]) - covered_before(intervals, windows[:, 0])
