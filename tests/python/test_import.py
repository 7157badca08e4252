# SPDX-License-Identifier: Apache-2.0
"""The modules that ``import feedline`` imports. Benchmarks measure its time; these tests check its causes."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from running_processes import HANG_S

import feedline

# Modules whose import is slow, or starts something: none is needed before the first array, command or rank.
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
    """Returns the modules that a fresh interpreter has imported after `statement` but not before, without those of
    site.
    """
    script = f'import sys; before = set(sys.modules); {statement}; print("\\n", *(set(sys.modules) - before))'
    # with -I -S, a package that is found through a .pth file or PYTHONPATH would be missing
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=HANG_S)
    return set(done.stdout.splitlines()[-1].split())


# The modules of the package itself that `import feedline` imports.
ALONE = {"feedline", "feedline.errors"}


def heavy(imported: set[str]) -> set[str]:
    return {name for name in imported if name in HEAVY or name.partition(".")[0] in HEAVY}


def test_import_brings_the_exceptions_alone() -> None:
    imported = imported_by("import feedline")
    assert {name for name in imported if name.partition(".")[0] == "feedline"} == ALONE
    assert not heavy(imported)


def test_a_name_brings_the_engine_and_nothing_heavy() -> None:
    imported = imported_by("import feedline; feedline.open")
    assert "feedline._engine" in imported and not heavy(imported)
    assert "feedline.data.presets" not in imported and "feedline.trace.profiling" not in imported


def test_help_brings_click_and_no_engine() -> None:
    imported = imported_by("import sys; sys.argv[1:] = ['--help']; from feedline.cli import main; assert main() == 0")
    assert "click" in imported and not {"feedline._engine", "feedline.data"} & imported
    assert not {"numpy", "rich", "torch", "fastjsonschema", "asyncio", "importlib.metadata"} & imported


def test_a_star_import_brings_nothing_heavy() -> None:
    assert not imported_by("from feedline import *") & {"numpy", "torch", "click", "rich"}


def test_dir_has_the_names_that_are_not_imported_yet_and_no_names_of_typing() -> None:
    script = (
        "import feedline, sys; print(*dir(feedline)); print(*{'torch', 'numpy', 'feedline._engine'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=HANG_S)
    names, imported = map(str.split, done.stdout.splitlines())
    assert {*feedline._MODULE_OF, *feedline.__all__, "presets"} <= set(names)
    assert {"DataLoader", "DistributedSampler", "WorkerPool", "shared", "BucketBatchSampler"} <= set(names)
    assert not {"Any", "TYPE_CHECKING"} & set(names) and not imported


def test_names_are_of_the_modules_that_types_are_checked_with() -> None:
    """The table of lazily imported names, the imports for type checkers, and `__all__` agree."""
    tree = ast.parse(Path(feedline.__file__).read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen.pop("presets") == "data"
    assert seen == feedline._MODULE_OF
    errors = {name for name, value in vars(feedline.errors).items() if isinstance(value, type) and name != "Any"}
    # a star import would import torch or NumPy
    hidden = {"DataLoader", "StatefulDataLoader", "WorkerPool", "BucketBatchSampler", "DistributedSampler", "shared"}
    assert set(feedline.__all__) == {*seen, *errors, "presets", "__version__"} - hidden
    assert set(feedline.__all__) <= set(dir(feedline))
    with pytest.raises(AttributeError, match="has no attribute 'opne'"):
        feedline.opne  # noqa: B018


def test_the_drop_in_brings_torch() -> None:
    pytest.importorskip("torch")
    assert "torch" in imported_by("from feedline import DataLoader"), "then the tests above could not see it"
