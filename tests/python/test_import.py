# SPDX-License-Identifier: Apache-2.0
"""What ``import feedline`` brings along. Time is for benchmarks; here it is what would take it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from running_processes import HANG_S

# Modules whose import takes long, or starts something: none of them is needed before the first array, verb or rank.
HEAVY = [
    "asyncio",
    "click",
    "concurrent.futures",
    "ctypes",
    "email",
    "fastjsonschema",
    "html",
    "http",
    "importlib.metadata",
    "inspect",
    "json",
    "logging",
    "multiprocessing",
    "numpy",
    "pathlib",
    "PIL",
    "prometheus_client",
    "rich",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "textual",
    "threading",
    "torch",
    "torchvision",
    "urllib",
    "wsgiref",
    "xml",
]


def imported_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has after `statement` and had not before, site's left out."""
    script = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    # -I -S would lose the package where a .pth file or PYTHONPATH leads to it
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=HANG_S)
    return set(done.stdout.split())


def test_import_brings_nothing_heavy() -> None:
    imported = imported_by("import feedline")
    assert "feedline._engine" in imported
    assert not {name for name in imported if name in HEAVY or name.partition(".")[0] in HEAVY}


@pytest.mark.parametrize("statement", ["import feedline; feedline.open", "from feedline import *"])
def test_names_bring_nothing_heavy(statement: str) -> None:
    assert not imported_by(statement) & {"numpy", "torch", "click", "rich"}


def test_the_drop_in_brings_torch() -> None:
    pytest.importorskip("torch")
    assert "torch" in imported_by("from feedline import DataLoader"), "then the tests above could not see it"
