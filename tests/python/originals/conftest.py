# SPDX-License-Identifier: Apache-2.0
"""The libraries whose formats are read, each in a separate environment, which `tools/test --formats` creates."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
_WRITER_S = 900  # only ends a hang

Original = Callable[..., Any]


@pytest.fixture
def original(tmp_path: Path) -> Original:
    """Runs a script in this folder with the Python of tools/requirements/originals/NAME.txt: `original(NAME, SCRIPT,
    *ARGUMENTS)` returns the JSON value in the last line of its output.
    """
    made = os.environ.get("FEEDLINE_ORIGINALS")
    if made is None:
        pytest.skip("needs the formats' own libraries: tools/test --formats installs them")

    def run(name: str, script: str, *arguments: object) -> Any:
        python = Path(made, name, "bin", "python")
        if not python.exists():
            pytest.skip(f"the environment of tools/requirements/originals/{name}.txt could not be made")
        command = [str(python), str(HERE / script), *map(str, arguments)]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=_WRITER_S, env=environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run
