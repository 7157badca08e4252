# SPDX-License-Identifier: Apache-2.0
"""multi_label= of feedline.files and feedline.table: tags as lists, arrays, text and categories."""

from __future__ import annotations

import numpy
import pytest

import feedline
from feedline.errors import ConfigError

LISTS = [["b", "a"], [], ["c"], None, ["b"]]
TEXTS = ["b  a", " ", "c", None, "b"]
EXPECTED = [[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]]


def tags_of(tags: object, separator: str | None = " ") -> feedline.Dataset:
    return feedline.files([f"{row}.jpg" for row in range(len(tags))], multi_label=tags, separator=separator)


def of_arrow(kind: str, values: list[object]) -> object:
    pyarrow = pytest.importorskip("pyarrow")
    item = getattr(pyarrow, kind)()
    types = {"list": pyarrow.list_(item), "large_list": pyarrow.large_list(item), "text": item}
    made = "text" if values is TEXTS else "list" if kind != "large_string" else "large_list"
    halves = [pyarrow.array(part, types[made]) for part in (values[:2], values[2:])]
    return pyarrow.chunked_array(halves)


def of_pandas(values: list[object], **options: object) -> object:
    return pytest.importorskip("pandas").Series(values, **options)


def of_polars(values: list[object]) -> object:
    return pytest.importorskip("polars").Series(values)


FORMS = {
    "lists": lambda: LISTS,
    "tuples and sets": lambda: [("b", "a"), set(), frozenset({"c"}), float("nan"), ["b"]],
    "arrays": lambda: [None if row is None else numpy.array(row, object) for row in LISTS],
    "arrays of text": lambda: [numpy.array(row or [], str) for row in LISTS],
    "text": lambda: TEXTS,
    "text without None": lambda: [text or "" for text in TEXTS],
    "lists and text": lambda: [*LISTS[:2], "c", None, "b"],
    "pandas": lambda: of_pandas(LISTS),
    "pandas arrays": lambda: of_pandas([None if row is None else numpy.array(row, object) for row in LISTS]),
    "pandas text": lambda: of_pandas(TEXTS),
    "pandas categories": lambda: of_pandas(TEXTS, dtype="category"),
    "unused categories": lambda: of_pandas(
        pytest.importorskip("pandas").Categorical(TEXTS, categories=["x y", "b", "c", " ", "b  a"])
    ),
    "polars": lambda: of_polars(LISTS),
    "polars text": lambda: of_polars(TEXTS),
    "Arrow": lambda: of_arrow("string", LISTS),
    "Arrow, large": lambda: of_arrow("large_string", LISTS),
    "Arrow, views": lambda: of_arrow("string_view", LISTS),
    "Arrow text": lambda: of_arrow("string", TEXTS),
    "Arrow slice": lambda: of_arrow("string", [["z"], *LISTS, ["z"]])[1:-1],
}


@pytest.mark.parametrize("form", FORMS)
def test_tags_are_the_same_in_every_form(form):
    made = tags_of(FORMS[form]())
    assert made.classes == ["a", "b", "c"]
    assert made.targets("label").dtype == numpy.float32
    assert made.targets("label").tolist() == EXPECTED


def test_tags_that_are_not_text_have_the_names_of_their_text():
    made = tags_of([[1, 10], (2,), numpy.array([10])])
    assert made.classes == ["1", "10", "2"]
    assert made.targets("label").tolist() == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]


def test_text_without_a_separator_is_one_tag():
    made = tags_of([" a b ", "", "c"], separator=None)
    assert made.classes == ["a b", "c"]
    assert made.targets("label").tolist() == [[1, 0], [0, 0], [0, 1]]


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ([["a"], ["b", None]], r"row 1 .* is \['b', None\], which contains a missing value"),
        ([["a"], {"b": 1}], r"row 1 .* is \{'b': 1\}; tags must be lists"),
        ([["a"], numpy.array(3)], r"row 1 .* is array\(3\); tags must be lists"),
        ([[], None], "row 0 .* has no tag, and neither does any other row"),
        (["", " "], "row 0 .* has no tag, and neither does any other row"),
    ],
)
def test_errors_name_the_row(tags, message):
    with pytest.raises(ConfigError, match=message):
        tags_of(tags)


def test_missing_tags_in_arrow_lists_are_errors():
    with pytest.raises(ConfigError, match=r"row 2 .* is \['b', None\], which contains a missing value"):
        tags_of(of_arrow("string", [["a"], [], ["b", None]]))
