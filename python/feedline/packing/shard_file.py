# SPDX-License-Identifier: Apache-2.0
"""One tar file that appears whole or not at all, with the same bytes whenever and by whomever it is written."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tarfile
from pathlib import Path

UNFINISHED = ".unfinished"
_BLOCK = 512
_END = bytes(2 * _BLOCK)


def member_header(name: str, size: int) -> bytes:
    """The header blocks of a regular file. No time, owner or permission of anybody is in them."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def member_bytes(name: str, size: int) -> int:
    """What a member takes of an archive."""
    return len(member_header(name, size)) + -(-size // _BLOCK) * _BLOCK


class ShardFile:
    """Writes beside `path` under a temporary name; `commit` makes it durable and gives it its own.

    After a `discard` instead, nothing is left behind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = len(_END)
        self._unfinished = path.with_name(path.name + UNFINISHED)
        self._file = open(self._unfinished, "wb")  # noqa: SIM115
        self._sum = hashlib.sha256()

    def add(self, name: str, content: bytes) -> None:
        """Appends a member."""
        self._write(member_header(name, len(content)))
        self._write(content)
        self._write(bytes(-len(content) % _BLOCK))
        self.bytes += member_bytes(name, len(content))

    def commit(self) -> str:
        """Returns the SHA-256 of the file that now stands at `path`, on the device and not only in memory."""
        self._write(_END)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._unfinished, self.path)
        sync_folder(self.path.parent)
        return self._sum.hexdigest()

    def discard(self) -> None:
        """Removes what was written."""
        with contextlib.suppress(OSError):  # a full disk does not take the rest of its buffer: nobody wants that now
            self._file.close()
        self._unfinished.unlink(missing_ok=True)

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._sum.update(data)


def sha256_of(path: Path) -> str:
    """Of a file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_durably(path: Path, content: bytes) -> None:
    """Replaces a file as a whole, and waits until the device has it."""
    unfinished = path.with_name(path.name + UNFINISHED)
    with open(unfinished, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Waits until the names in a folder are on the device: a file without its name would be lost by a power cut."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
