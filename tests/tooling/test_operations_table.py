# SPDX-License-Identifier: Apache-2.0
"""docs/operations.md shows the operations that the engine has, with the arguments of their methods."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "operations_table.py"


def test_the_table_is_current():
    pytest.importorskip("feedline._engine", reason="the extension is not built")
    checked = subprocess.run([sys.executable, TOOL, "--check"], check=False)
    assert checked.returncode == 0, "run tools/operations_table.py"
