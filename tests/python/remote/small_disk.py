# SPDX-License-Identifier: Apache-2.0
"""A disk that is sometimes full: a small tmpfs, if this process may mount one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType


class SmallDisk:
    """Mounted at `place` while the context is active. If `refusal` gives a reason, it cannot be mounted, and `place` is
    an ordinary folder.
    """

    def __init__(self, path: Path, mebibytes: int) -> None:
        self.path, self.refusal = path, ""
        self._options = f"size={mebibytes}m,mode=0755"

    def __enter__(self) -> SmallDisk:
        self.path.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", self._options, "feedline-tests", str(self.path)]
        try:
            mounted = subprocess.run(command, capture_output=True, text=True, check=False)
            self.refusal = mounted.stderr.strip() if mounted.returncode else ""
        except OSError as error:
            self.refusal = str(error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.refusal:  # lazily, because a process that was just killed may still have a file open
            subprocess.run(["umount", "--lazy", str(self.path)], check=False)

    def leave_free(self, free: int) -> None:
        """Leaves this many bytes free, or the nearest possible number: a file occupies the rest."""
        if self.refusal:
            return
        ballast = os.open(self.path / "ballast", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            taken = os.fstat(ballast).st_size
            disk = os.statvfs(self.path)
            size = max(0, taken + disk.f_bavail * disk.f_frsize - free)
            os.ftruncate(ballast, min(size, taken))
            if size > taken:
                os.posix_fallocate(ballast, 0, size)
        except OSError:  # another process was faster: the disk is full
            pass
        finally:
            os.close(ballast)


def remove_copies(cache: Path) -> None:
    """Returns the size of a cache, calculated independently of its readers."""
    shutil.rmtree(cache / "objects", ignore_errors=True)
