# SPDX-License-Identifier: Apache-2.0
"""The stand-in of NVIDIA's management library (src/observe/fake_nvml.c), built under the name that the driver's has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NAME = "libnvidia-ml.so.1"
_SOURCE = Path(__file__).parents[2] / "src" / "observe" / "fake_nvml.c"


def build(folder: Path, *flags: str) -> Path:
    """The library, in `folder`; the test is skipped where nothing compiles it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the stand-in of NVML")
    library = folder / NAME
    command = [compiler, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", *flags, "-o", library, _SOURCE]
    subprocess.run(command, check=True)
    return library
