# SPDX-License-Identifier: Apache-2.0
"""Detects the kind of a lock file and reads its listing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ...errors import ConfigError
from . import conda_files, pixi, pyproject_locks, requirements
from .listing import Listing

_MOST_BYTES = 256 << 20
Reader = Callable[[str, str, str, str], Listing]  # text, source, platform, python


def read_lock(path: str | os.PathLike[str], platform: str, python: str | None) -> Listing:
    """Returns the listing of a lock, for one platform and Python version.

    Args:
        path: environment.yml or .json, an @EXPLICIT list, output of `conda list --export`, conda-lock.yml, pixi.lock,
            pixi.toml, uv.lock, pylock.toml, or a requirements file, detected by name and content.
        platform: name of the platform, such as ``linux-64``.
        python: Python version, such as ``3.11.2``; None evaluates markers for the running Python.

    Raises:
        ConfigError: `path` is none of these, is damaged, or has an unsupported version; the message contains the file's
            name.
        OSError: the file cannot be read.
    """
    file = Path(path)
    if file.stat().st_size > _MOST_BYTES:
        raise ConfigError(f"{file} is not a lock: it is too large")
    raw = file.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not a lock: it is not UTF-8") from None
    kind, reader = _reader(file.name, text)
    try:
        return reader(text, str(file), platform, python or "")
    except ConfigError:
        raise
    except Exception as error:  # errors of YAML and TOML readers, and of values with an unexpected type
        raise ConfigError(f"{file} is a damaged {kind}: {_cause(error)}") from None


def _cause(error: Exception) -> str:
    """Returns a description of a damaged lock, from the error of its reader."""
    if isinstance(error, KeyError):
        return f"the key {error.args[0]!r} is missing"
    if isinstance(error, (AttributeError, TypeError)):
        return "a value does not have the type that the format requires"
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)  # set by YAML readers
    if mark is not None and problem:
        return f"{problem} in line {mark.line + 1}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _reader(name: str, text: str) -> tuple[str, Reader]:
    if name == "pixi.lock":
        return "pixi.lock", pixi.read_lock
    if name == "uv.lock":
        return "uv.lock", pyproject_locks.read_uv
    if name == "pixi.toml":
        return "pixi.toml", pixi.read_manifest
    if name.startswith("pylock.") and name.endswith(".toml"):
        return "pylock.toml", pyproject_locks.read_pylock
    if name.endswith((".toml", ".lock")):
        raise ConfigError(f"{name} is not a known lock: expected uv.lock, pixi.lock, pixi.toml, pylock.toml")
    if any(line.strip() == "@EXPLICIT" for line in text.splitlines()):
        return "list of @EXPLICIT", conda_files.read_explicit
    if conda_files.LIST in text:
        return "list of conda", conda_files.read_list
    if name.endswith((".yml", ".yaml", ".json")):
        if "\nmetadata:" in f"\n{text}" and "\npackage:" in f"\n{text}":
            return "conda-lock.yml", conda_files.read_conda_lock
        return "environment.yml", conda_files.read_environment
    if name.endswith((".txt", ".in")):
        return "file of requirements", requirements.read
    raise ConfigError(
        f"{name} is not a snapshot or known lock: environment.yml, an @EXPLICIT list, output of conda list "
        "--export, conda-lock.yml, pixi.lock, pixi.toml, uv.lock, pylock.toml, requirements.txt"
    )
