# SPDX-License-Identifier: Apache-2.0
"""Reads system files below a root folder, which is "/" except in tests. All access to system files goes through this
class.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Space:
    """Size and free space of a file system in bytes, and its free inodes; `inodes` is None if the file system does not
    count them.
    """

    total_bytes: int
    free_bytes: int  # for this user
    inodes: int
    free_inodes: int

    @property
    def used_share(self) -> float:
        return 1 - self.free_bytes / self.total_bytes if self.total_bytes else 0.0


class SystemFiles:
    """This class reads files and never raises. Missing files are returned as None; paths of files without read
    permission are also added to `refused`.

    `statvfs` replaces the system's function in tests.
    """

    def __init__(self, path: Path = Path("/"), statvfs: Callable[[Path], os.statvfs_result] = os.statvfs) -> None:
        self.path = path
        self.refused: list[str] = []
        self._statvfs = statvfs

    @property
    def for_engine(self) -> str:
        """The root for the engine's readers; "" for this machine."""
        return "" if self.path == Path("/") else str(self.path)

    def text(self, name: str) -> str | None:
        try:
            return (self.path / name).read_text(errors="replace")
        except PermissionError:
            self.refused.append(f"/{name}")
        except (OSError, ValueError):
            pass
        return None

    def number(self, name: str) -> float | None:
        """Returns the first word of a file as a number, or None."""
        words = (self.text(name) or "").split()
        try:
            return float(words[0])
        except (IndexError, ValueError):
            return None

    def names(self, folder: str) -> list[str]:
        """Returns the sorted names in a folder; empty if it does not exist."""
        try:
            return sorted(os.listdir(self.path / folder))
        except PermissionError:
            self.refused.append(f"/{folder}")
        except OSError:
            pass
        return []

    def has(self, name: str) -> bool:
        try:
            return (self.path / name).exists()
        except OSError:
            return False

    def space(self, name: str | Path) -> Space | None:
        """Returns the size of the file system that contains a path."""
        try:
            found = self._statvfs(self.path / str(name).lstrip("/"))
        except (OSError, ValueError):
            return None
        size = found.f_frsize or found.f_bsize
        return Space(found.f_blocks * size, found.f_bavail * size, found.f_files, found.f_favail)
