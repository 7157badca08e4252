# SPDX-License-Identifier: Apache-2.0
"""Long lists of strings, as datasets of files hold them, pickled without a memo.

pickle notes every string and tuple that it writes, in case the same object comes again. For a million paths that is
four fifths of the time of pickling them, 32 MB meanwhile, and 8 MB in every process that reads. An object that one
container alone refers to cannot come again, so nothing about it needs to be noted: what is read is the same, down to
which objects are one object. Whether that holds is asked of the reference counts; where it does not, or where it is
not certain, pickle does as ever.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any

LONG = 10_000  # elements: what pickle needs for the notes about so many, and we for the counts, is below 3 ms
_NOTED = frozenset({str, bytes})  # what pickle notes; it writes those below each time
_NUMBERS = frozenset({int, float, bool, type(None)})


class LongList:
    """Stands for `items` in what is pickled; a pickler's `reducer_override` gives what `reduced` returns for it."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def reduced(self, stop_noting: Callable[[bool], None]) -> tuple[Any, ...]:
        stop_noting(True)
        return operator.getitem, ((self._items, EndOfList()), 0)


class EndOfList:
    """Comes behind the elements of a `LongList`. One for each, as the pickler notes it."""

    def reduced(self, stop_noting: Callable[[bool], None]) -> tuple[Any, ...]:
        stop_noting(False)
        return int, ()


def has_long_list(value: Any) -> bool:
    """Whether `value` is an object with a long list as an attribute, that pickle takes apart by its usual rules."""
    kind: Any = type(value)
    return (
        kind.__dictoffset__ != 0
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and any(type(item) is list and len(item) >= LONG for item in value.__dict__.values())
    )


def stand_ins(state: dict[str, Any]) -> dict[str, Any]:
    """`state` of an object with a `LongList` for every list that nothing else than `state` refers to, and whose
    elements nothing else than this list refers to. A list that is there twice has one stand-in.
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
    """True when the elements, strings or flat tuples of strings and numbers, have no other reference than `items`."""
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
    """The same of element `at` of each row; numbers may be anywhere, as pickle writes them each time."""
    column = operator.itemgetter(at)
    kinds = set(map(type, map(column, rows)))
    if kinds <= _NUMBERS:
        return True
    of_one = _most_references(map(operator.itemgetter(0), [(_fresh(),)]))
    return len(kinds) == 1 and kinds <= _NOTED and _most_references(map(column, rows)) == of_one


def _most_references(values: Iterable[Any]) -> int:
    """Means something only beside what this gives for an object that is known to have one reference."""
    return max(map(sys.getrefcount, values))


def _fresh() -> str:
    """A string that nothing else refers to."""
    return "".join(["a fresh", " string"])
