# SPDX-License-Identifier: Apache-2.0
"""A disk that is full now and again: a small tmpfs, where this process may mount one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType


class SmallDisk:
    """Mounted at `place` while it is entered. `refusal` says why it is none: then `place` is a folder like any."""

    def __init__(self, place: Path, mebibytes: int) -> None:
        self.place, self.refusal = place, ""
        self._options = f"size={mebibytes}m,mode=0755"

    def __enter__(self) -> SmallDisk:
        self.place.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", self._options, "feedline-tests", str(self.place)]
        try:
            mounted = subprocess.run(command, capture_output=True, text=True, check=False)
            self.refusal = mounted.stderr.strip() if mounted.returncode else ""
        except OSError as error:
            self.refusal = str(error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.refusal:  # lazily: a process that was just killed may hold a file
            subprocess.run(["umount", "--lazy", str(self.place)], check=False)

    def leave_free(self, free: int) -> None:
        """So many bytes, or the nearest that can be had: another one's file takes the rest."""
        if self.refusal:
            return
        ballast = os.open(self.place / "ballast", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            taken = os.fstat(ballast).st_size
            disk = os.statvfs(self.place)
            size = max(0, taken + disk.f_bavail * disk.f_frsize - free)
            os.ftruncate(ballast, min(size, taken))
            if size > taken:
                os.posix_fallocate(ballast, 0, size)
        except OSError:  # somebody was quicker: it is full
            pass
        finally:
            os.close(ballast)


def remove_copies(cache: Path) -> None:
    """Of a cache, by hand, whoever reads them."""
    shutil.rmtree(cache / "objects", ignore_errors=True)
