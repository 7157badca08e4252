# SPDX-License-Identifier: Apache-2.0
"""The table of tested versions in docs/versions.md is that of the record, and hides no failure."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools/versions.py"


@pytest.fixture(scope="module")
def versions() -> Any:
    spec = importlib.util.spec_from_file_location("versions", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_the_record(versions: Any) -> None:
    record = json.loads(versions.RECORD.read_text())
    assert versions.BEGIN + versions.table(record) + versions.END in versions.PAGE.read_text()
    assert all((versions.ROOT / test).exists() for test in versions.TESTS)


def test_failures_and_gaps_are_shown(versions: Any) -> None:
    entry = {"python": "3.11.7", "torch": "2.11.0", "numpy": "2.4.6", "pillow": "13.0.0", "date": "2026-11-30"}
    record = {
        "current": {**entry, "passed": 7, "failed": ["a.py::b"], "skipped": 1},
        "numpy_2.0": {"date": "2026-11-30", "not_run": "pip: no such version"},
    }
    rows = versions.table(record).splitlines()
    assert "| 3.11.7 | 2.11.0 | 2.4.6 | 13.0.0 | 7 passed, 1 failed: a.py::b (2026-11-30) |" in rows
    assert "|  |  | 2.0.2 |  | not tested: pip: no such version |" in rows
    assert "|  |  |  | 11.3.0 | not tested yet |" in rows
