# SPDX-License-Identifier: Apache-2.0
"""Long lists are pickled without memo entries, and the result preserves which objects are identical."""

from __future__ import annotations

import io
import pickle
import pickletools
from multiprocessing.reduction import ForkingPickler
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedline.torch_loader.workers import list_pickling as long_lists
from feedline.torch_loader.workers.worker_args import _OncePickler


class _Data:
    pass


class _OwnState(_Data):
    def __getstate__(self):
        return {**self.__dict__, "asked": True}


def _pickled(value, kind=_OncePickler):
    file = io.BytesIO()
    kind(file, 5).dump(value)
    return file.getvalue()


def _notes(value):
    return sum(op.name == "MEMOIZE" for op, _, _ in pickletools.genops(_pickled(value)))


def _path(i):
    return f"/data/image_{i:06}.jpg"


_leaf = st.one_of(
    st.tuples(st.just("fresh"), st.integers(0, 99)),
    st.tuples(st.just("shared"), st.integers(0, 2)),
    st.tuples(st.just("value"), st.sampled_from([0, 1 << 70, 0.5, None, True, "", "a", b""])),
)
_row = st.one_of(_leaf, st.tuples(st.just("row"), st.lists(_leaf, max_size=3)), st.tuples(st.just("shared row"), _leaf))
_lists = st.one_of(
    st.lists(_row, max_size=6),
    st.lists(st.tuples(st.just("fresh"), st.integers(0, 99)), min_size=2, max_size=9),
    st.lists(st.tuples(st.just("row"), st.tuples(_leaf, _leaf)), min_size=2, max_size=6),
    st.lists(st.tuples(st.just("shared row"), st.tuples(st.just("fresh"), st.integers(0, 3))), min_size=2, max_size=6),
)
_attribute = st.one_of(
    st.tuples(st.just("list"), _lists),
    st.tuples(st.just("again"), st.integers(0, 5)),
    st.tuples(st.just("within"), st.integers(0, 5)),
    st.tuples(st.just("object"), _lists),
    st.tuples(st.just("leaf"), _leaf),
)


def _made(kind, attributes):
    """A dataset that holds the only references to its contents, as `attributes` specifies."""
    pool = [f"shared string {i}" for i in range(3)]
    rows: dict[object, tuple[object, ...]] = {}

    def element(what):
        name, value = what
        if name == "fresh":
            return _path(value)
        if name == "shared":
            return pool[value]
        if name == "row":
            return tuple([element(part) for part in value])
        if name == "shared row":
            return rows.setdefault(value, (element(value), _path(0)))
        return value

    data = kind()
    for at, (name, value) in enumerate(attributes):
        earlier = [item for item in vars(data).values() if type(item) is list]
        if name == "list":
            item = [element(what) for what in value]
        elif name == "object":
            item = kind()
            item.items = [element(what) for what in value]
        elif name == "leaf":
            item = element(value)
        else:
            item = earlier[value % len(earlier)] if earlier else None
            item = {"within": item} if name == "within" else item
        setattr(data, f"attribute_{at}", item)
        del item, earlier
    return data


def _shape(value):
    """Returns values, types, and for each object whether it occurred before."""
    seen: dict[int, int] = {}
    out: list[object] = []

    def walk(item):
        if isinstance(item, (list, tuple, dict, str, bytes, _Data)):
            if id(item) in seen:
                out.append(("again", seen[id(item)]))
                return
            seen[id(item)] = len(seen)
        out.append(type(item))
        if isinstance(item, _Data):
            walk(vars(item))
        elif isinstance(item, dict):
            for key, part in item.items():
                out.append(key)
                walk(part)
        elif isinstance(item, (list, tuple)):
            for part in item:
                walk(part)
            out.append("end")
        else:
            out.append(item)

    walk(value)
    return out


@settings(deadline=None)
@given(st.sampled_from([_Data, _OwnState]), st.lists(_attribute, max_size=5))
def test_what_is_read_is_the_same_down_to_which_objects_are_one(kind, attributes):
    data = _made(kind, attributes)
    with mock.patch.object(long_lists, "LONG", 2):
        ours = pickle.loads(_pickled(data))
    assert _shape(ours) == _shape(pickle.loads(_pickled(data, ForkingPickler)))


@pytest.mark.parametrize("element", [_path, lambda i: (_path(i), i % 10), lambda i: (i, 0.5, _path(i), None)])
def test_no_element_of_a_long_list_is_noted_where_it_is_alone(element):
    data = _Data()
    data.items = [element(i) for i in range(long_lists.LONG)]
    data.again = data.items  # as ImageFolder's `imgs` and `samples`
    data.label = "read"
    assert _notes(data) < 30
    read = pickle.loads(_pickled(data))
    assert type(read.items) is list
    assert read.items == data.items
    assert read.again is read.items


def _string_elsewhere(data):
    data.first = data.items[0]


def _list_elsewhere(data):
    data.by_name = {"train": data.items}


def _string_twice(data):
    data.items[-1] = data.items[0]


def _subclass(data):
    data.items[-1] = type("Path", (str,), {"__reduce__": lambda self: (str, (str(self),))})("x")


@pytest.mark.parametrize("change", [_string_elsewhere, _list_elsewhere, _string_twice, _subclass])
def test_what_may_come_again_is_noted(change):
    data = _Data()
    data.items = [_path(i) for i in range(long_lists.LONG)]
    change(data)
    assert _notes(data) >= long_lists.LONG - 1
    assert _shape(pickle.loads(_pickled(data))) == _shape(pickle.loads(_pickled(data, ForkingPickler)))


def test_a_state_is_asked_for_once_also_where_it_has_a_long_list():
    class Counted(_Data):
        asked = 0

        def __getstate__(self):
            Counted.asked += 1
            return self.__dict__

    data = Counted()
    data.items = [_path(i) for i in range(long_lists.LONG)]
    with mock.patch.dict(globals(), {"Counted": Counted}):
        Counted.__qualname__ = "Counted"
        _pickled(data)
    assert Counted.asked == 1
