# SPDX-License-Identifier: Apache-2.0
"""docs/requirements.md: 77 rows, and every verb, option, call, page and test that they name is there."""

from __future__ import annotations

import importlib
import re

import pytest

pytest.importorskip("click", reason="the command line is not installed")
pytest.importorskip("rich", reason="the command line is not installed")

from test_corrections import DOCS, anchors

import feedline
from feedline.cli.root import root

CHECKOUT = DOCS.parent
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (DOCS / "requirements.md").read_text().splitlines()
    if re.match(r"\| \d+ \|", line)
]


def test_all_are_there_in_their_order() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, 78))
    assert all(len(row) == 5 and row[1] and row[2] for row in ROWS)


@pytest.mark.parametrize(("number", "asks", "by", "page", "test"), ROWS, ids=[f"R{row[0]}" for row in ROWS])
def test_what_a_row_names_is_there(number: str, asks: str, by: str, page: str, test: str) -> None:
    if not by.startswith("not yet"):
        assert page and test, "what is done has a page and a test"
    for verb, rest in re.findall(r"`feedline ([a-z-]+)([^`]*)`", by):
        options = {name for option in root.commands[verb].params for name in option.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= options
    for call in re.findall(r"`feedline\.(\w+)", by):
        if call != "DataLoader":  # which would import torch
            assert hasattr(feedline, call)
    for name in re.findall(r"`((?:examples|docs)/[^`]+)`", by):
        assert (CHECKOUT / name).exists()
    for link in re.findall(r"\]\(([^)]+)\)", page):
        file, _, anchor = link.partition("#")
        assert (DOCS / file).is_file() and (not anchor or anchor in anchors(DOCS / file)), link
    if test:
        text = (CHECKOUT / test).read_text()
        assert re.search(r"^(?:async )?def test_", text, re.MULTILINE), f"{test} has no test"


def test_where_nothing_is_done_no_verb_is_named() -> None:
    assert importlib.util.find_spec("feedline.doctor") is not None
    for number, _, by, *_ in ROWS:
        if by == "not yet":
            assert "`" not in by, number
