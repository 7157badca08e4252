# SPDX-License-Identifier: Apache-2.0
"""Projects of pip: by uv where it is there, else by pip; into a venv of their own, or over a conda environment."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError, StorageError
from .plan import Plan

_LAST_LINES = 8


@dataclass(frozen=True)
class From:
    """Where wheels are taken from. `indexes`: URLs, empty: as uv or pip are configured; `folders`: with wheels in them;
    `offline`: no index is asked."""

    indexes: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    offline: bool = False

    @property
    def options(self) -> list[str]:
        found = ["--no-index"] if self.offline else []
        for i, index in enumerate(() if self.offline else self.indexes):
            found += ["--extra-index-url" if i else "--index-url", index]
        return found + [word for folder in self.folders for word in ("--find-links", folder)]


def make_venv(version: str, prefix: Path) -> None:
    """A virtual environment without any package.

    Raises:
        ConfigError: no Python of that version is here.
        StorageError: it could not be made.
    """
    own = platform.python_version()
    fits = not version or own == version or own.startswith(f"{version}.")
    base = getattr(sys, "_base_executable", None) or sys.executable
    uv = uv_program()
    if uv is not None:
        _run([uv, "venv", "--quiet", "--no-project", "--python", base if fits else version, str(prefix)])
    elif fits:
        _run([base, "-m", "venv", "--without-pip", str(prefix)])
    else:
        raise ConfigError(f"Python {version} is wanted, and this is {own}: pip install uv, which finds or brings it")


def install_pip(plan: Plan, prefix: Path, given: From) -> None:
    """Installs the projects of `plan` into the environment at `prefix`: exactly these where the lock is complete.

    Raises:
        ConfigError: there is no Python in it.
        StorageError: the installer failed; its last lines are told.
    """
    if not plan.pip:
        return
    python = prefix / "bin/python"
    if not python.exists():
        raise ConfigError(f"{plan.listing.source} lists projects of pip, and no Python to install them for")
    with tempfile.TemporaryDirectory(prefix="feedline-env-") as folder:
        lines = Path(folder, "requirements.txt")
        lines.write_text("\n".join(plan.requirements) + "\n")
        options = [*given.options, "-r", str(lines)]
        options += ["--require-hashes"] if plan.hashed else []
        options += ["--no-deps"] if plan.exact and plan.listing.complete else []
        uv = uv_program()
        if uv is not None:
            _run([uv, "pip", "install", "--quiet", "--python", str(python), *options])
        else:
            own = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
            _run([*own, "install", "--quiet", *options])


def uv_program() -> str | None:
    """uv on the path, or the one that is installed beside us."""
    found = shutil.which("uv")
    if found is None and importlib.util.find_spec("uv") is not None:
        beside = os.path.join(os.path.dirname(sys.executable), "uv")
        found = beside if os.access(beside, os.X_OK) else None
    return found


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()[-_LAST_LINES:]
        program = os.path.basename(command[0])
        raise StorageError(f"{program} failed with exit status {done.returncode}: " + "\n  ".join(words))
