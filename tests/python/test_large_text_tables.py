# SPDX-License-Identifier: Apache-2.0
"""Text tables that are parsed in parts and stored in mapped files."""

from __future__ import annotations

import bz2
import functools
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import feedline
import feedline.testing

ROWS = 120_000
PARTS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}  # files of more than 8 MiB are read in parts


@pytest.fixture(autouse=True)
def small_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    feedline.testing.force(block_cache_bytes=50_000)
    yield
    feedline.testing.force()


@functools.cache
def text_of(row: int) -> str:
    return f'row {row}, with a comma, a "quote", a\nline break and é' + "x" * (row % 60)


@functools.cache
def jsonl() -> str:
    return "".join(
        json.dumps({"text": text_of(row), "label": row}, ensure_ascii=row % 2 == 0) + "\n" for row in range(ROWS)
    )


@functools.cache
def csv() -> str:
    quoted = ('"' + text_of(row).replace('"', '""') + '"' for row in range(ROWS))
    return "text,label\r\n" + "".join(f"{text},{row}\r\n" for row, text in enumerate(quoted))


@pytest.mark.parametrize("end", list(PARTS))
@pytest.mark.parametrize(("name", "write"), [("x.jsonl", jsonl), ("x.csv", csv)])
def test_all_rows_are_read(name: str, write: Callable[[], str], end: str, tmp_path: Path) -> None:
    data = write().encode()
    assert len(data) > 9 << 20
    (tmp_path / (name + end)).write_bytes(PARTS[end](data))
    dataset = feedline.open(str(tmp_path / (name + end)), fields=("text:text", "label"))
    assert len(dataset) == ROWS
    with dataset.loader(1000, shuffle=True, seed=1, output="numpy") as loader:
        seen = 0
        for batch in loader:
            assert list(batch.text) == [text_of(int(label)) for label in batch.label]
            seen += len(batch.label)
    assert seen == ROWS


def test_errors_name_the_line_in_a_later_part(tmp_path: Path) -> None:
    lines = jsonl().splitlines()
    lines[100_000] = '{"text": "no end'
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    with pytest.raises(feedline.DataError, match="line 100001 "):
        feedline.open(str(tmp_path / "x.jsonl"))
    rows = csv().replace("row 100000,", 'row 100000" ,', 1)
    (tmp_path / "x.csv").write_text(rows, newline="")
    with pytest.raises(feedline.DataError, match="line 200002 has text after a quoted cell"):
        feedline.open(str(tmp_path / "x.csv"))


def test_memory_does_not_grow_with_the_table(tmp_path: Path) -> None:
    rows = (json.dumps({"text": text_of(row) + "y" * 150, "label": row % 10}) + "\n" for row in range(1000))
    thousand = "".join(rows).encode()
    with gzip.open(tmp_path / "x.jsonl.gz", "wb", compresslevel=1) as file:
        for _ in range(1000):
            file.write(thousand)
    code = (
        "import feedline, sys\n"
        "ds = feedline.open(sys.argv[1], fields='text:text')\n"
        "next(iter(ds.loader(8, shuffle=True, output='numpy')))\n"
        "print(len(ds), next(line for line in open('/proc/self/status') if line.startswith('RssAnon')).split()[1])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x.jsonl.gz")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    count, anonymous = done.stdout.split()
    assert int(count) == 1_000_000
    assert int(anonymous) < 180_000, "KiB; the table has about 250 MB"
