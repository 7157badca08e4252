# SPDX-License-Identifier: Apache-2.0
"""Finds and empties the package caches of pip, uv, conda and py-rattler."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError
from .homes import bytes_of

# Programs that use a cache while they run.
_USERS = {
    "pip": ("pip", "pip3"), "uv": ("uv", "uvx"), "conda": ("conda", "mamba", "micromamba"),
    "rattler": ("pixi", "rattler"),
}  # fmt: skip


@dataclass(frozen=True)
class Cache:
    """A package cache: the tool's name, its folder, and the total size of its files."""

    tool: str
    folder: Path
    bytes: int


def caches() -> list[Cache]:
    """Returns the existing caches that are not empty."""
    found: dict[Path, str] = {}
    for tool, folder in _candidates():
        if folder.is_dir():
            found.setdefault(folder.resolve(), tool)
    sized = [Cache(tool, folder, bytes_of(folder)) for folder, tool in found.items()]
    return [one for one in sized if one.bytes]


def empty(cache: Cache, proc: Path = Path("/proc")) -> None:
    """Removes the contents of a cache. Installed environments are not affected: their files are copies or hard links.

    Raises:
        ConfigError: a program that uses the cache is running, or environments link to the cache.
        OSError: a file cannot be removed.
    """
    running = [pid for pid, name in _programs(proc) if name in _USERS[cache.tool]]
    if running:
        raise ConfigError(f"{cache.folder} may be in use by {cache.tool} (process {running[0]}): wait until it ends")
    if os.environ.get("UV_LINK_MODE") == "symlink" and cache.tool == "uv":
        raise ConfigError(f"UV_LINK_MODE=symlink: environments link to {cache.folder}, which is not removed")
    for path in cache.folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _candidates() -> Iterator[tuple[str, Path]]:
    shared = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    yield "pip", Path(os.environ.get("PIP_CACHE_DIR") or shared / "pip")
    yield "uv", Path(os.environ.get("UV_CACHE_DIR") or shared / "uv")
    yield "rattler", Path(os.environ.get("RATTLER_CACHE_DIR") or shared / "rattler" / "cache")
    for folder in filter(None, os.environ.get("CONDA_PKGS_DIRS", "").split(",")):
        yield "conda", Path(folder)
    yield "conda", Path(os.path.expanduser("~/.conda/pkgs"))
    base = os.environ.get("CONDA_EXE")
    if base:
        yield "conda", Path(base).parent.parent / "pkgs"


def _programs(proc: Path) -> Iterator[tuple[int, str]]:
    """Returns the names of running programs, and of the scripts and modules that Python runs."""
    for folder in proc.glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if int(folder.name) == os.getpid():
            continue
        names = [os.path.basename(word) for word in words[:2]]
        if words[1:2] == ["-m"]:
            names += words[2:3]
        yield from ((int(folder.name), name) for name in names if name)
