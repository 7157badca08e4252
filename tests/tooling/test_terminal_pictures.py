# SPDX-License-Identifier: Apache-2.0
"""tools/terminal_pictures.py and tools/terminal_svg.py: screens in, a picture with their words out."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("rich", reason="rich is not installed")

CHECKOUT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def tools() -> Any:
    """The two modules, as the script finds them: beside it."""
    sys.path.insert(0, str(CHECKOUT / "tools"))
    try:
        yield importlib.import_module("terminal_pictures"), importlib.import_module("terminal_svg")
    finally:
        sys.path.remove(str(CHECKOUT / "tools"))


def words(picture: str) -> list[tuple[float, float, str]]:
    """Place and text of what is written below the window's bar."""
    found = ElementTree.fromstring(picture).iter(f"{SVG}text")
    return [(float(one.get("x", 0)), float(one.get("y", 0)), one.text or "") for one in found][1:]


def test_words_are_in_their_columns_and_colours(tools: Any) -> None:
    _, svg = tools
    screen = svg.Screen(1, ("\x1b[1;31mloader\x1b[0m waits  44 % <&", "", "\x1b[7m on \x1b[0m", "█▊··"))
    picture = svg.drawn([screen], 40, "feedline top", 'a "loop"')
    left, column, row = svg.MARGIN, svg.CHARACTER, svg.ROW
    first = svg.BAR + svg.SIZE
    assert words(picture) == [
        (left, first, "loader"),
        (round(left + 7 * column, 1), first, "waits"),
        (round(left + 14 * column, 1), first, "44 % <&"),
        (round(left + column, 1), first + 2 * row, "on"),
        (left, first + 3 * row, "█▊··"),
    ]
    kind = re.search(r'class="(c\d)"[^>]*>loader<', picture)
    assert kind and re.search(rf"\.{kind[1]}{{fill:#cc555a;font-weight:700}}", picture)
    back = [one for one in ElementTree.fromstring(picture).iter(f"{SVG}rect") if one.get("height") == str(row)]
    assert [(one.get("x"), one.get("width")) for one in back] == [("14", f"{4 * column:g}")]
    assert "animation" not in picture and 'aria-label="a &quot;loop&quot;"' in picture


def test_rows_that_stay_are_written_once_and_others_in_their_time(tools: Any) -> None:
    _, svg = tools
    screens = [
        svg.Screen(1, ("title", "0 of 2")),
        svg.Screen(2, ("title", "1 of 2")),
        svg.Screen(5, ("title", "done", "")),
    ]
    picture = svg.drawn(screens, 20, "", "")
    assert [text for *_, text in words(picture)] == ["title", "0 of 2", "1 of 2", "done"]
    groups = {
        one.get("class"): "".join(one.itertext()).strip() for one in ElementTree.fromstring(picture).iter(f"{SVG}g")
    }
    assert groups == {None: "title", "t0-1 gone": "0 of 2", "t1-2 gone": "1 of 2", "t2-3 last": "done"}
    shown = dict(re.findall(r"@keyframes (t\S+?){(.*)}$", picture, re.MULTILINE))
    assert shown == {
        "t0-1": "0.00%{visibility:visible}12.50%{visibility:hidden}",
        "t1-2": "0%{visibility:hidden}12.50%{visibility:visible}37.50%{visibility:hidden}",
        "t2-3": "0%{visibility:hidden}37.50%{visibility:visible}",
    }
    before = picture.partition("@media (prefers-reduced-motion:no-preference){")[0]
    assert ".gone{visibility:hidden}" in before and "animation" not in before, "who wants no motion sees the last"


def test_screens_are_thinned_and_waiting_is_cut_short(tools: Any) -> None:
    pictures, svg = tools
    seen = [(1, "a"), (1, "a"), (0.5, "b"), (0.1, "c"), (60, "d"), (0.2, "e")]
    kept = pictures.thinned([svg.Screen(seconds, (line,)) for seconds, line in seen], most=4)
    assert [(round(one.seconds, 3), one.lines[0]) for one in kept] == [(2, "a"), (0.6, "b"), (2, "d"), (0.2, "e")]


@pytest.mark.parametrize("line", ["as jo", "on box7", "/home/jo/data", "read /tmp/x.jpg", "x" * 100_000])
def test_a_picture_that_tells_too_much_is_refused(line: str, tools: Any) -> None:
    pictures, svg = tools
    with pytest.raises(SystemExit):
        pictures.checked(svg.drawn([svg.Screen(1, (line,))], 80, "", ""), ("jo", "box7"))


def test_a_picture_that_tells_nothing_passes(tools: Any) -> None:
    pictures, svg = tools
    picture = svg.drawn([svg.Screen(1, ("jobs of boxes, /dev/shm 2 GB",))], 80, "", "")
    assert pictures.checked(picture, ("jo", "box", "")) == picture


def test_the_pictures_of_the_checkout_are_those_of_the_recordings_and_are_shown(tools: Any) -> None:
    pictures, _ = tools
    files = {path.stem.removeprefix("terminal-"): path for path in pictures.PICTURES.glob("terminal-*.svg")}
    assert files.keys() == pictures.RECORDINGS.keys()
    pages = [CHECKOUT / "README.md", *(CHECKOUT / "docs").glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"pictures/terminal-(\w+)\.svg\)", page.read_text())}
    assert shown == files.keys()
    for name, path in files.items():
        picture = pictures.checked(path.read_text(), ())
        assert f"feedline {name}" in picture and len(words(picture)) > 15
        assert re.findall(r"https?://[^\"]*", picture) == ["http://www.w3.org/2000/svg"]
