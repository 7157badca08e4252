# SPDX-License-Identifier: Apache-2.0
"""The files that a machine tells of itself by, below a root that is "/" or another: one door to all of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Space:
    """Of a file system: bytes, and how many files it can still hold. No `inodes`: it does not count them."""

    total_bytes: int
    free_bytes: int  # for this user
    inodes: int
    free_inodes: int

    @property
    def used_share(self) -> float:
        return 1 - self.free_bytes / self.total_bytes if self.total_bytes else 0.0


class Root:
    """Reads, never raises: what is not there is None, and what may not be read stands in `refused` as well.

    `statvfs` stands for the system's, of a made machine whose file systems have sizes of their own.
    """

    def __init__(self, path: Path = Path("/"), statvfs: Callable[[Path], os.statvfs_result] = os.statvfs) -> None:
        self.path = path
        self.refused: list[str] = []
        self._statvfs = statvfs

    @property
    def for_engine(self) -> str:
        """As the engine's readers take it: "" is this machine."""
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
        """The first word of a file as a number; None: it is none."""
        words = (self.text(name) or "").split()
        try:
            return float(words[0])
        except (IndexError, ValueError):
            return None

    def names(self, folder: str) -> list[str]:
        """Of what is in a folder, sorted; none where it is not there."""
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
        """Of the file system that a path is on."""
        try:
            found = self._statvfs(self.path / str(name).lstrip("/"))
        except (OSError, ValueError):
            return None
        size = found.f_frsize or found.f_bsize
        return Space(found.f_blocks * size, found.f_bavail * size, found.f_files, found.f_favail)
