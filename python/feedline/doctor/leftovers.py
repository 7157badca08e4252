# SPDX-License-Identifier: Apache-2.0
"""Files that killed runs left in /dev/shm and /tmp: their owner, age and removal."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..machine.system_files import SystemFiles

# file names created by torch, multiprocessing and NCCL, with the process ID if there is one
_PATTERNS = {
    "dev/shm": (
        r"torch_(?P<pid>\d+)_\d+_\d+",
        r"torch_(?P<pid>\d+)",
        r"psm_[0-9a-f]{8}",
        r"sem\.mp-\w{8}",
        r"nccl-\w{6,}",
    ),
    "tmp": (r"pymp-\w{8}", r"torch_(?P<pid>\d+)_\d+_\d+", r"torchelastic_\w+", r"tmp\w{8}_torch_shm"),
}
_LEAST_AGE_S = 3600.0  # a run that is starting has files that no process has opened yet


@dataclass(frozen=True)
class Leftover:
    """A file or folder that no process has open, and whose creator, if known from its name, has exited."""

    path: Path  # absolute path on this machine
    size: int
    owner: int  # user ID
    age_s: float


def leftovers(root: SystemFiles, now_s: float | None = None) -> tuple[Leftover, ...]:
    """Returns leftovers, largest first. Returns none if processes are not visible, because files in use are then
    unknown.
    """
    now_s = time.time() if now_s is None else now_s
    pids = [name for name in root.names("proc") if name.isdigit()]
    candidates = list(_candidates(root, now_s, set(pids)))
    if not pids or not candidates:
        return ()
    in_use = _in_use(root, pids)
    found = [one for one in candidates if not any(_is_within(used, root, one.path) for used in in_use)]
    return tuple(sorted(found, key=lambda one: -one.size))


def remove(found: tuple[Leftover, ...], user: int) -> tuple[int, list[str]]:
    """Removes the leftovers owned by `user`, or all if root. Returns the number of bytes freed, and a sentence for each
    file that was skipped.

    A leftover that has changed since it was found is skipped, because it is in use.
    """
    freed, remaining = 0, []
    for one in found:
        if user not in (0, one.owner):
            remaining.append(f"{one.path} belongs to user {one.owner}")
            continue
        try:
            status = one.path.lstat()
            if status.st_uid != one.owner or time.time() - status.st_mtime < _LEAST_AGE_S:
                remaining.append(f"{one.path} has changed since it was found")
                continue
            shutil.rmtree(one.path) if stat.S_ISDIR(status.st_mode) else one.path.unlink()
            freed += one.size
        except OSError as error:
            remaining.append(f"{one.path}: {error.strerror}")
    return freed, remaining


def _candidates(root: SystemFiles, now_s: float, alive: set[str]) -> Iterator[Leftover]:
    for folder, patterns in _PATTERNS.items():
        for name in root.names(folder):
            match = next(filter(None, (re.fullmatch(pattern, name) for pattern in patterns)), None)
            if match is None or match.groupdict().get("pid") in alive:
                continue
            path = root.path / folder / name
            with contextlib.suppress(OSError):
                status = path.lstat()
                age_s = now_s - status.st_mtime
                if not stat.S_ISLNK(status.st_mode) and age_s >= _LEAST_AGE_S:
                    yield Leftover(path, _size(path, status), status.st_uid, age_s)


def _size(path: Path, status: os.stat_result) -> int:
    """Returns the allocated size, because files in memory may have holes."""
    if not stat.S_ISDIR(status.st_mode):
        return status.st_blocks * 512
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(folder) / name).lstat().st_blocks * 512
    return total


def _in_use(root: SystemFiles, pids: list[str]) -> set[str]:
    """Returns paths in /dev/shm and /tmp that any visible process has open or mapped."""
    found = set()
    for pid in pids:
        for line in _quietly(root, f"proc/{pid}/maps").splitlines():
            start = line.find("/")
            if start >= 0 and line.startswith(("/dev/shm/", "/tmp/"), start):
                found.add(line[start:].removesuffix(" (deleted)"))
        with contextlib.suppress(OSError):
            for number in os.listdir(root.path / f"proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    found.add(os.readlink(root.path / f"proc/{pid}/fd/{number}"))
    return found


def _quietly(root: SystemFiles, name: str) -> str:
    """Ignores other users' processes, which cannot be read."""
    try:
        return (root.path / name).read_text(errors="replace")
    except OSError:
        return ""


def _is_within(used: str, root: SystemFiles, path: Path) -> bool:
    name = "/" + str(path.relative_to(root.path))
    return used == name or used.startswith(name + "/")
