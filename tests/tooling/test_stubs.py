# SPDX-License-Identifier: Apache-2.0
"""The stub of the extension that is shipped equals the generated one, so a change of the interface is visible in
review.

After an intended change: `python -m nanobind.stubgen -m feedline._engine -o python/feedline/_engine.pyi` in .venv.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "python/feedline/_engine.pyi"


def signatures(text):
    """The stub without its comments, blank lines and formatting, which ruff and nanobind see differently."""
    return ast.unparse(ast.parse(text))


def test_the_engines_stub_is_current(tmp_path):
    pytest.importorskip("nanobind.stubgen", reason="nanobind is not installed")
    pytest.importorskip("feedline._engine", reason="the extension is not built")
    made = tmp_path / "_engine.pyi"
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "feedline._engine", "-o", made], check=True)
    assert signatures(SHIPPED.read_text()) == signatures(made.read_text())


def test_the_package_is_typed():
    assert (SHIPPED.parent / "py.typed").is_file()


def test_installed_and_shipped_stubs_agree():
    feedline = pytest.importorskip("feedline", reason="the package is not installed")
    installed = Path(feedline.__file__).parent
    for stub in (ROOT / "python/feedline").glob("**/*.pyi"):
        assert (installed / stub.relative_to(ROOT / "python/feedline")).read_text() == stub.read_text()
