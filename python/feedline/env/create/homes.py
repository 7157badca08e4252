# SPDX-License-Identifier: Apache-2.0
"""Finds environments and the processes that use them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError
from ..reading.place import EnvironmentPrefix, is_conda_base, place_at

DAY_S = 86_400
# <project>_<framework>_<device>: the name describes the content
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*_[a-z0-9][a-z0-9.]*_(?:cpu|cu\d+|cuda[\d.]*|rocm[\d.]*|gpu|xpu|mps)")


@dataclass(frozen=True)
class Home:
    """An entry of `feedline env list`.

    Attributes:
        place: the location of the environment.
        bytes: the total size of the files; hard-linked files count once.
        made: creation time in seconds since 1970.
        used: last access time according to the file system; None if access times are disabled.
        pids: processes that have mapped files of the environment, among those that this user may inspect.
        by_rule: whether the name has the form ``<project>_<framework>_<device>``.
    """

    place: EnvironmentPrefix
    bytes: int
    made: float
    used: float | None
    pids: tuple[int, ...]
    by_rule: bool


def is_stale(home: Home, days: int, now: float) -> bool:
    """Whether an environment was not used for `days` days; if the last use is unknown, the creation time counts."""
    return not home.pids and now - max(home.used or 0, home.made) > days * DAY_S


def home_of_all() -> Path:
    """Returns the folder in which `create` creates environments: $FEEDLINE_ENVIRONMENTS, or
    ~/.local/share/feedline/environments.
    """
    given = os.environ.get("FEEDLINE_ENVIRONMENTS")
    shared = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return Path(given or f"{shared}/feedline/environments")


def follows_rule(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def prefix_of(name: str) -> Path:
    """Returns the folder of an environment. A path is returned unchanged; a name is a subfolder of the environments
    folder.
    """
    return Path(name).absolute() if "/" in name or name in (".", "..") else home_of_all() / name


def homes(further: Iterable[Path] = (), proc: Path = Path("/proc")) -> list[Home]:
    """Returns all environments in the environments folder, in conda's list and folders, and in `further` folders or
    their direct subfolders.
    """
    found: dict[Path, EnvironmentPrefix] = {}
    for folder in [*_candidates(), *(each for one in further for each in (one, *_within(one)))]:
        if _is_one(folder):
            found.setdefault(folder.resolve(), place_at(folder))
    users = _users(list(found), proc)
    return [_home(place, users[path]) for path, place in sorted(found.items())]


def home_at(folder: Path, proc: Path = Path("/proc")) -> Home:
    """Returns the environment in a folder.

    Raises:
        ConfigError: the folder contains no environment, or is the system's Python.
    """
    place = place_at(folder)
    if place.kind == "system":
        raise ConfigError(f"{folder} is the system's Python, not a project environment")
    return _home(place, _users([folder.resolve()], proc)[folder.resolve()])


def remove(home: Home) -> None:
    """Removes an environment.

    Raises:
        ConfigError: a process uses the environment, or other environments depend on its Python.
        OSError: a file or folder cannot be removed.
    """
    prefix = home.place.prefix
    if home.pids:
        raise ConfigError(f"{prefix} is in use by process {', '.join(map(str, home.pids[:5]))}: stop it first")
    if is_conda_base(prefix):
        raise ConfigError(
            f"{prefix} is conda's base environment, which other environments depend on, and is not removed"
        )
    shutil.rmtree(prefix)


def _candidates() -> Iterator[Path]:
    yield from _within(home_of_all())
    listed = Path(os.path.expanduser("~/.conda/environments.txt"))
    if listed.is_file():
        yield from (Path(line.strip()) for line in listed.read_text(errors="replace").splitlines() if line.strip())
    given = os.environ.get("CONDA_ENVS_PATH") or os.environ.get("CONDA_ENVS_DIRS") or ""
    for folder in (*filter(None, given.split(":")), os.path.expanduser("~/.conda/envs")):
        yield from _within(Path(folder))


def _within(folder: Path) -> Iterator[Path]:
    if folder.is_dir() and os.access(folder, os.R_OK | os.X_OK):
        yield from sorted(path for path in folder.iterdir() if path.is_dir())


def _is_one(folder: Path) -> bool:
    try:
        return (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()
    except OSError:
        return False


def _home(place: EnvironmentPrefix, pids: tuple[int, ...]) -> Home:
    marks = [place.prefix / name for name in ("pyvenv.cfg", "conda-meta/history", "conda-meta")]
    mark = next((one for one in marks if one.exists()), place.prefix)
    return Home(place, bytes_of(place.prefix), mark.stat().st_mtime, _used(place), pids, follows_rule(place.name))


def bytes_of(folder: Path) -> int:
    """Returns the disk space of all files in a folder; hard-linked files count once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                one = os.lstat(f"{path}/{name}")
            except OSError:
                continue
            if one.st_nlink == 1 or (one.st_dev, one.st_ino) not in seen:
                seen.add((one.st_dev, one.st_ino))
                total += one.st_blocks * 512
    return total


def _used(place: EnvironmentPrefix) -> float | None:
    """Returns the last access time of a file that Python reads at each start. Linux updates access times once a day
    (relatime), or never (noatime).
    """
    read = [place.prefix / "pyvenv.cfg", *place.prefix.glob("lib/python3.*/encodings/__init__.py")]
    times = [(one.stat().st_atime, one.stat().st_mtime) for one in read if one.is_file()]
    latest = max((atime for atime, _ in times), default=None)
    return latest if any(atime > mtime for atime, mtime in times) else None


def _users(prefixes: list[Path], proc: Path) -> dict[Path, tuple[int, ...]]:
    """Returns the processes that use each environment, from their mapped files and the Python in their command
    lines.
    """
    found: dict[Path, list[int]] = {prefix: [] for prefix in prefixes}
    for folder in proc.glob("[0-9]*") if prefixes else ():
        try:
            maps = (folder / "maps").read_text(errors="replace")
            program = (folder / "cmdline").read_bytes().partition(b"\0")[0].decode(errors="replace")
        except OSError:
            continue
        for prefix, pids in found.items():
            if f" {prefix}/" in maps or program.startswith(f"{prefix}/"):
                pids.append(int(folder.name))
    return {prefix: tuple(sorted(pids)) for prefix, pids in found.items()}
