# SPDX-License-Identifier: Apache-2.0
"""Files that appear atomically, with reproducible bytes, and tar files in particular."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

UNFINISHED = ".unfinished"
_BLOCK = 512
_END = bytes(2 * _BLOCK)


def member_header(name: str, size: int) -> bytes:
    """Returns the header blocks of a regular file, without time, owner or permissions."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def member_bytes(name: str, size: int) -> int:
    """Returns the size of a member in an archive."""
    return len(member_header(name, size)) + -(-size // _BLOCK) * _BLOCK


class AtomicFile:
    """A temporary file next to `path`; `commit` makes it durable and renames it.

    `discard` removes the temporary file instead.
    """

    entry: dict[str, Any] | None = None  # see layouts.ShardWriter

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        self._unfinished = path.with_name(path.name + UNFINISHED)
        self._file = open(self._unfinished, "wb")  # noqa: SIM115
        self._sum = hashlib.sha256()

    def commit(self) -> str:
        """Moves the file to `path` durably and returns its SHA-256."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._unfinished, self.path)
        sync_folder(self.path.parent)
        return self._sum.hexdigest()

    def discard(self) -> None:
        """Removes the partial file."""
        with contextlib.suppress(OSError):  # flushing fails on a full disk, and the data is discarded anyway
            self._file.close()
        self._unfinished.unlink(missing_ok=True)

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._sum.update(data)


class ShardFile(AtomicFile):
    """A tar file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.bytes = len(_END)

    def add(self, name: str, content: bytes) -> None:
        """Appends a member."""
        self._write(member_header(name, len(content)))
        self._write(content)
        self._write(bytes(-len(content) % _BLOCK))
        self.bytes += member_bytes(name, len(content))

    def commit(self) -> str:
        self._write(_END)
        return super().commit()


def sha256_of(path: Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def durable_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that replaces `path` atomically and durably when the block ends, and is removed if it raises."""
    unfinished = path.with_name(path.name + UNFINISHED)
    try:
        with open(unfinished, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_durably(path: Path, content: bytes) -> None:
    """Replaces a file atomically and durably."""
    with durable_file(path) as file:
        file.write(content)


def sync_folder(path: Path) -> None:
    """Syncs a folder, because a power failure would lose a file whose name is not on the device."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
