# SPDX-License-Identifier: Apache-2.0
"""Reads kernel log messages about killed processes, if the user has permission to read the log."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path

_KILLS = re.compile(r"oom-kill:|Killed process|out of memory|segfault at|general protection|traps: |bus error", re.I)
_MOST_RECORDS = 20_000
_RECORD_BYTES = 16384
_LONGEST = 300


class KernelLog:
    """The messages logged after this object is created. Must be closed. `refused` is the reason why the
    log cannot be read, or "".
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._file, self.refused = -1, ""
        try:
            self._file = os.open(root / "dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._file, 0, os.SEEK_END)  # earlier messages are not about this run
        except OSError as error:
            self.close()
            self.refused = f"/dev/kmsg cannot be read: {error.strerror}"

    def close(self) -> None:
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.close(self._file)
        self._file = -1

    def kills(self) -> tuple[str, ...]:
        """Returns the new messages about killed processes, without their time stamps."""
        found: list[str] = []
        for _ in range(_MOST_RECORDS if self._file >= 0 else 0):
            try:
                record = os.read(self._file, _RECORD_BYTES)  # each call returns one record
            except OSError as error:
                if error.errno == errno.EPIPE:  # the kernel has overwritten records; the next call continues
                    continue
                break
            if not record:
                break
            for line in record.decode(errors="replace").splitlines():
                text = line.partition(";")[2] or line
                if _KILLS.search(text):
                    found.append("".join(c for c in text[:_LONGEST] if c.isprintable()))
        return tuple(found)
