# SPDX-License-Identifier: Apache-2.0
"""Pickles long lists of strings, as in datasets of files, without a memo.

pickle stores every string and tuple in its memo, in case the same object occurs again. For a million paths, the memo
takes four fifths of the pickling time, 32 MB temporarily, and 8 MB in every process that reads the list. An object that
is referenced by only one container cannot occur again, so it needs no memo entry, and reading the list preserves object
identities. Reference counts show whether an object has only one reference. Objects that have or may have several
references are pickled as usual.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any

LONG = 10_000  # elements: below this, memo entries and our counts take less than 3 ms
_NOTED = frozenset({str, bytes})  # types in pickle's memo; it writes numbers each time
_NUMBERS = frozenset({int, float, bool, type(None)})


class LongList:
    """Replaces the list `items` in pickled data. A pickler's `reducer_override` must return the result of `reduced`."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def reduced(self, stop_noting: Callable[[bool], None]) -> tuple[Any, ...]:
        stop_noting(True)
        return operator.getitem, ((self._items, EndOfList()), 0)


class EndOfList:
    """Marks the end of the elements of a `LongList`. Each list needs its own marker, because pickle stores the marker
    in its memo.
    """

    def reduced(self, stop_noting: Callable[[bool], None]) -> tuple[Any, ...]:
        stop_noting(False)
        return int, ()


def has_long_list(value: Any) -> bool:
    """Returns whether `value` has a long list as an attribute and is pickled by the default rules."""
    kind: Any = type(value)
    return (
        kind.__dictoffset__ != 0
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and any(type(item) is list and len(item) >= LONG for item in value.__dict__.values())
    )


def stand_ins(state: dict[str, Any]) -> dict[str, Any]:
    """Returns `state` with a `LongList` in place of each list that is referenced only by `state` and whose elements are
    referenced only by the list. A list that occurs twice is replaced by the same `LongList`.
    """
    references = dict(zip(state, map(sys.getrefcount, state.values()), strict=True))
    of_one = max(map(sys.getrefcount, {"": []}.values()))
    times: dict[int, int] = {}
    for item in state.values():
        times[id(item)] = times.get(id(item), 0) + 1
    found: dict[int, LongList] = {}
    changed = dict(state)
    for name, item in state.items():
        if type(item) is not list or len(item) < LONG or references[name] - of_one != times[id(item)] - 1:
            continue
        if id(item) not in found and are_alone(item):
            found[id(item)] = LongList(item)
        changed[name] = found.get(id(item), item)
    return changed


def are_alone(items: list[Any]) -> bool:
    """Returns whether the elements (strings, or flat tuples of strings and numbers) are referenced only by `items`."""
    kinds = set(map(type, items))
    if kinds == {tuple}:
        lengths = set(map(len, items))
        return (
            len(lengths) == 1
            and _most_references(items) == _most_references([(_fresh(),)])
            and all(_is_column_alone(items, at) for at in range(lengths.pop()))
        )
    return len(kinds) == 1 and kinds <= _NOTED and _most_references(items) == _most_references([_fresh()])


def _is_column_alone(rows: list[tuple[Any, ...]], at: int) -> bool:
    """Returns whether element `at` of each row is referenced only by its row. Numbers may have other references,
    because pickle does not store numbers in its memo.
    """
    column = operator.itemgetter(at)
    kinds = set(map(type, map(column, rows)))
    if kinds <= _NUMBERS:
        return True
    of_one = _most_references(map(operator.itemgetter(0), [(_fresh(),)]))
    return len(kinds) == 1 and kinds <= _NOTED and _most_references(map(column, rows)) == of_one


def _most_references(values: Iterable[Any]) -> int:
    """Returns the largest reference count, to be compared with the result for an object that has a single reference."""
    return max(map(sys.getrefcount, values))


def _fresh() -> str:
    """Returns a new string that has no other reference."""
    return "".join(["a fresh", " string"])
