# SPDX-License-Identifier: Apache-2.0
"""The simulated NVML (src/observe/fake_nvml.c), built under the name of the driver's library."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NAME = "libnvidia-ml.so.1"
_SOURCE = Path(__file__).parents[2] / "src" / "observe" / "fake_nvml.c"


def build(folder: Path, *flags: str) -> Path:
    """Builds the library in `folder`; skips the test if no compiler is installed."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the stand-in of NVML")
    library = folder / NAME
    command = [compiler, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", *flags, "-o", library, _SOURCE]
    subprocess.run(command, check=True)
    return library
