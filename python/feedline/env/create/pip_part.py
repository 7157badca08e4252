# SPDX-License-Identifier: Apache-2.0
"""Installs pip projects with uv, or with pip if uv is not installed, into a venv or a conda environment."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError, StorageError
from ..differences import meets_python
from .plan import Plan

_LAST_LINES = 8
_PIP_FOR_OTHERS = (22, 3)  # the first version with --python


@dataclass(frozen=True)
class From:
    """The sources of wheels. `indexes` are URLs; if empty, uv's or pip's configuration applies. `folders` contain
    wheels. `offline` disables indexes.
    """

    indexes: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    offline: bool = False

    def options(self, listed: Sequence[str]) -> list[str]:
        """Returns options for pip and uv. `listed` are the lock's options, used online if `indexes` is empty."""
        found = ["--no-index"] if self.offline else []
        for i, index in enumerate(() if self.offline else self.indexes):
            found += ["--extra-index-url" if i else "--index-url", index]
        if not found:
            found += listed
        return found + [word for folder in self.folders for word in ("--find-links", folder)]


def make_venv(version: str, prefix: Path) -> None:
    """Creates a virtual environment without packages.

    Raises:
        ConfigError: no Python of that version is available.
        StorageError: the environment cannot be created.
    """
    own = platform.python_version()
    fits = not version or meets_python(own, version)
    base = _base_python()
    uv = uv_program()
    if uv is not None:
        _run([uv, "venv", "--quiet", "--no-project", "--python", base if fits else version, str(prefix)])
    elif fits:
        _run([base, "-m", "venv", "--without-pip", str(prefix)])
    else:
        raise ConfigError(
            f"Python {version} is required, but this is {own}: install uv (pip install uv), which finds or downloads "
            f"Python {version}"
        )


def install_pip(plan: Plan, prefix: Path, given: From) -> None:
    """Installs the projects of `plan` into the environment at `prefix`, and no others if the lock is complete.

    Raises:
        ConfigError: the environment has no Python.
        StorageError: the installer failed; the message contains the last lines of its output.
    """
    if not plan.pip:
        return
    python = prefix / "bin/python"
    if not python.exists():
        raise ConfigError(f"{plan.listing.source} lists pip's projects, and its conda packages do not include Python")
    with tempfile.TemporaryDirectory(prefix="feedline-env-") as folder:
        lines = Path(folder, "requirements.txt")
        lines.write_text("\n".join(plan.requirements) + "\n")
        options = [*given.options(plan.index_options), "-r", str(lines)]
        options += ["--require-hashes"] if plan.hashed else []
        options += ["--no-deps"] if plan.exact and plan.listing.complete else []
        uv = uv_program()
        if uv is not None:
            # Versions are exact, so any index may provide them, as with pip; uv's default uses only the first index.
            options += ["--index-strategy", "unsafe-best-match"] if "--extra-index-url" in options else []
            _run([uv, "pip", "install", "--quiet", "--python", str(python), *options])
        else:
            own = [*pip_command(folder), "--python", str(python), "--disable-pip-version-check"]
            _run([*own, "install", "--quiet", *options])


def pip_command(folder: str) -> list[str]:
    """Returns a pip that can install into another environment: this Python's pip, its base Python's pip, or a new pip
    in `folder`.

    Raises:
        ConfigError: pip is not installed, and ensurepip cannot install it.
    """
    base = _base_python()
    for python in dict.fromkeys((sys.executable, base)):
        command = [python, "-m", "pip"]
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
        version = re.match(r"pip (\d+)\.(\d+)", done.stdout)
        if done.returncode == 0 and version and tuple(map(int, version.groups())) >= _PIP_FOR_OTHERS:
            return command
    made = os.path.join(folder, "pip")
    try:
        _run([base, "-m", "venv", made])
    except StorageError as error:
        raise ConfigError(f"neither uv nor pip 22.3 or later is installed: pip install uv ({error})") from None
    return [os.path.join(made, "bin", "python"), "-m", "pip"]


def _base_python() -> str:
    return getattr(sys, "_base_executable", None) or sys.executable


def uv_program() -> str | None:
    """Returns the path of uv, from PATH or from this environment."""
    found = shutil.which("uv")
    if found is None and importlib.util.find_spec("uv") is not None:
        own_uv = os.path.join(os.path.dirname(sys.executable), "uv")
        found = own_uv if os.access(own_uv, os.X_OK) else None
    return found


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()[-_LAST_LINES:]
        program = os.path.basename(command[0])
        raise StorageError(f"{program} failed with exit status {done.returncode}: " + "\n  ".join(words))
