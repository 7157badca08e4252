# SPDX-License-Identifier: Apache-2.0
"""The progress of a long-running subcommand: an append-only file of JSON lines, from which it can resume after being
killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from pathlib import Path
from typing import Any

from ..errors import ConfigError, StorageError

_MOST_BYTES = 4 << 30  # larger files are something else


class Journal:
    """A journal, which only one process can use at a time; its lock is released when that process ends. A truncated
    last line is dropped.

    Args:
        path: the file, which is created if missing.
        head: the arguments of the work, stored in the first line. A journal with a different head is not resumed.
        where: name of the subcommand, for error messages.

    Raises:
        ConfigError: the file is not a journal, has a different head (the message shows the difference), or is in use.
        StorageError: the file cannot be read or written.
    """

    def __init__(self, path: Path, head: dict[str, Any], where: str) -> None:
        self._path, self._where = path, where
        self.lines: list[dict[str, Any]] = []  # without the head
        try:
            self._file = open(path, "a+b")  # noqa: SIM115
        except OSError as error:
            raise StorageError(f"{where}: {path} cannot be opened: {error.strerror}", errno=error.errno) from None
        try:
            self._lock()
            self._read(json.loads(json.dumps(head)))
        except OSError as error:
            self.close()
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"{where}: {path} cannot be resumed: {error.strerror}", errno=error.errno) from None
        except BaseException:
            self.close()
            raise

    def append(self, line: dict[str, Any]) -> None:
        """Appends an entry; can be called from any thread. Entries are not lost if the process is killed."""
        try:
            self._file.write(json.dumps(line).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise StorageError(
                f"{self._where}: {self._path} cannot be written: {error.strerror}", errno=error.errno
            ) from None

    def close(self) -> None:
        with contextlib.suppress(OSError):  # data that append() could not write, which it has reported
            self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"{self._where}: another process is writing {self._path}") from None

    def _read(self, head: dict[str, Any]) -> None:
        status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            raise self._foreign()
        self._file.seek(0)
        lines, end = [], 0
        for text in self._file:
            if not text.endswith(b"\n"):
                break  # truncated
            try:
                line = json.loads(text)
            except ValueError:
                raise self._foreign() from None
            if not isinstance(line, dict):
                raise self._foreign()
            lines.append(line)
            end += len(text)
        if not lines and self._file.seek(0, os.SEEK_END) > 0 and not self._begins_like(head):
            raise self._foreign()
        self._file.truncate(end)
        self._file.seek(end)
        if not lines:
            self.append(head)
            return
        self._expect(head, lines[0])
        self.lines = lines[1:]

    def _begins_like(self, head: dict[str, Any]) -> bool:
        """Whether the first line is truncated."""
        self._file.seek(0)
        begun = self._file.read(len(json.dumps(head)))
        return json.dumps(head).encode().startswith(begun)

    def _expect(self, head: dict[str, Any], begun: dict[str, Any]) -> None:
        if begun.keys() != head.keys():
            raise self._foreign()
        differences = [
            f"{name} was {begun[name]!r} and is {value!r}" for name, value in head.items() if begun[name] != value
        ]
        if differences:
            raise ConfigError(
                f"{self._where}: {self._path} has other arguments: {'; '.join(differences)}. Pass the same arguments "
                "to resume, or another file"
            )

    def _foreign(self) -> ConfigError:
        return ConfigError(f"{self._where}: {self._path} is not a journal; choose another file")
