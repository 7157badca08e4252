# SPDX-License-Identifier: Apache-2.0
"""The scripts that set up a checkout announce what they install before they start."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from running_processes import HANG_S

TOOLS = Path(__file__).parents[2] / "tools"
if not TOOLS.is_dir():
    pytest.skip("not in a checkout", allow_module_level=True)


def names(path: Path) -> list[str]:
    return [line.split("#")[0].strip() for line in path.read_text().splitlines() if line.split("#")[0].strip()]


@pytest.mark.parametrize("script", ["demo", "wheel"])
def test_a_dry_run_lists_missing_packages_and_minutes_and_installs_nothing(script: str, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "tools").symlink_to(TOOLS)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("dpkg-query", "apt-get"):  # no package is installed, and an installation fails
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    command = ["bash", str(checkout / "tools" / script), "--dry-run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    assert re.match(rf"tools/{script} needs about \d+ minutes on \d+ CPUs", done.stdout)
    listed = done.stdout.split()
    assert set(names(TOOLS / "apt_packages.txt")) <= set(listed), done.stdout
    assert set(names(TOOLS / "requirements" / "build.txt")) <= set(listed), done.stdout
    assert any(word.startswith("torch==") for word in listed) == (script == "demo")
    assert sorted(path.name for path in checkout.iterdir()) == ["tools"], "nothing was installed or built"
