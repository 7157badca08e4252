# SPDX-License-Identifier: Apache-2.0
"""feedline report: a page that loads nothing and runs nothing, for any record, and that shows its figures."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import made_records
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image
from running_processes import HANG_S

from feedline import record
from feedline.record.files import empty_measurements
from feedline.report import numbers, page

RECORDS = {
    "bench": made_records.bench(),
    "diagnose": record.from_diagnosis(made_records.diagnosis(), made_records.STEPS),
    "bare": {**made_records.bench(), **empty_measurements()},
}
HOSTILE = "<script>alert(1)</script>\"'&</style><img src=x onerror=alert(2)>\x00\ud800"
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


class Page(HTMLParser):
    """Parses the page like a browser, as far as this is needed here."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def assert_closed(text: str) -> Page:
    """Nothing in the page runs, and no link leaves it."""
    found = Page(text)
    assert not {"script", "img", "link", "iframe", "object", "embed", "base", "form", "a"} & set(found.tags)
    for name, value in found.attributes:
        assert not name.startswith("on") and name not in ("src", "href", "xlink:href", "style", "srcset", "action")
        assert "url(" not in value
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None and not re.search(r"url\(|@import|http", style[1])
    assert text.count("default-src 'none'") == 1
    return found


@pytest.mark.parametrize("name", RECORDS)
def test_the_page_needs_nothing_from_outside(name: str) -> None:
    text = page(RECORDS[name])
    assert text.startswith("<!DOCTYPE html>") and len(text) < 200_000
    assert_closed(text)


def test_everything_that_the_record_holds_is_there() -> None:
    diagnosed = " ".join(assert_closed(page(RECORDS["diagnose"])).words)
    for words in (
        "storage_latency",
        "a batch takes 120 ms to make",
        "Predicted gain: 40% to 90%",
        "8 workers would help",
        "Do this first: set num_workers=8",
        "this kernel has no /proc/pressure",
        "Search over workers",
        "Timeline",
        "Distribution: wait for a batch",
        "PCIe",
    ):
        assert words in diagnosed
    benched = " ".join(assert_closed(page(RECORDS["bench"])).words)
    assert "1,000/s" in benched and "nvme" in benched and "13.0.0" in benched


def with_strings(value: Any, text: str) -> Any:
    """Returns the record with `text` for every string except those for which the schema has a list."""
    if isinstance(value, dict):
        unchanged = ("better", "unit", "basis") + (("name",) if "bytes_per_s" in value else ())
        return {key: item if key in unchanged else with_strings(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [with_strings(item, text) for item in value]
    return text if isinstance(value, str) else value


@pytest.mark.parametrize("name", RECORDS)
def test_hostile_strings_stay_strings(name: str) -> None:
    made = record.check(with_strings(copy.deepcopy(RECORDS[name]), HOSTILE))
    for group in ("configuration", "machine", "histograms"):
        made[group] = {f"{HOSTILE}{key}": value for key, value in made[group].items()}
    text = page(made)
    assert "<script>alert(1)</script>\"'&" in "".join(assert_closed(text).words)
    assert "\x00" not in text
    text.encode("utf-8")


@settings(deadline=None, max_examples=50)
@given(st.floats(0, 1e300), st.floats(0, 1e300), st.integers(0, 2**60))
def test_any_figures_can_be_drawn(value: float, other: float, count: int) -> None:
    made = copy.deepcopy(RECORDS["diagnose"])
    made["figures"][0] |= {"value": value, "low": other, "high": value}
    made["stages"][0]["ms_per_batch"] = value
    made["timeline"]["series"][0]["points"] = [[0, value, other], [value, other, value]]
    made["histograms"]["wait_ms"]["counts"][0] = count
    made["ladder"]["rungs"][0] |= {"batches_per_s": value, "high": other, "low": -other}
    text = page(record.check(made))
    assert_closed(text)
    assert not re.search(r"\bnan\b", text) and not re.search(r'="-?inf', text)


@settings(deadline=None, max_examples=50)
@given(st.floats(-1e300, 1e300), st.floats(1e-300, 1e300))
@example(3840781582132079.0, 1.0)
def test_ticks_are_few_and_inside(low: float, span: float) -> None:
    made = numbers.ticks(low, low + span)
    assert 1 <= len(made) <= 7 or low + span == low
    assert all(low - 0.01 * span <= tick <= low + 1.01 * span for tick in made)


def test_numbers_are_short() -> None:
    assert [numbers.number(v) for v in (0, 0.01234, 4.5678, 78.91, 1234.5)] == ["0", "0.0123", "4.57", "78.9", "1,234"]
    assert numbers.size(1536) == "1.5 KiB" and numbers.with_unit(0.123, "share") == "12.3%"


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt install chromium)")
@pytest.mark.parametrize(("name", "width"), [("bench", 1600), ("diagnose", 800)])
def test_a_browser_shows_it(name: str, width: int, tmp_path: Path) -> None:
    (tmp_path / "run.html").write_text(page(RECORDS[name]), encoding="utf-8")
    shot = tmp_path / "shot.png"
    result = subprocess.run(
        [
            str(CHROMIUM),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--window-size={width},1400",
            f"--screenshot={shot}",
            f"file://{tmp_path / 'run.html'}",
        ],
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert shot.exists(), result.stderr
    assert "CONSOLE" not in result.stderr, result.stderr
    image = Image.open(shot).convert("RGB")
    assert image.width == width
    colours = image.getcolors(1 << 24)
    assert colours is not None and len(colours) > 50
    assert max(count for count, _ in colours) < 0.97 * image.width * image.height
    assert any(colour == (0x2F, 0x6F, 0xDE) for _, colour in colours)  # the first series is drawn


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    run = tmp_path / "run.json"
    record.write(RECORDS["bench"], run)
    command = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())", "report", str(run)]

    def status(*options: str | Path) -> int:
        return subprocess.run([*command, *map(str, options)], capture_output=True, timeout=HANG_S).returncode

    assert status("-o", tmp_path / "page.html") == 0
    assert_closed((tmp_path / "page.html").read_text())
    assert status() == 0 and (tmp_path / "run.html").exists()
    before = run.read_bytes()
    assert status("-o", run) == 2 and run.read_bytes() == before
    assert status("-o", tmp_path / "missing" / "page.html") == 2
    run.write_text("{}")
    assert status("-o", tmp_path / "page.html") == 3
