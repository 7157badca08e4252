# SPDX-License-Identifier: Apache-2.0
"""Writes a folder's listing as a file, so that the folder can be opened over HTTP, which cannot list."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ..data import arguments
from ..errors import ConfigError, StorageError

NAME = "feedline-listing.txt"  # name that the engine requests; src/storage/http/listing_file.h describes its lines
_HEAD = "feedline-listing 1 {lines}\n"


class Listed(NamedTuple):
    """Numbers of entries in a listing that was written."""

    listing: str
    files: int
    folders: int  # empty folders
    bytes: int  # total of the files


def write_listing(folder: str | os.PathLike[str]) -> Listed:
    """Writes the listing of a folder into the folder, replacing an earlier listing. No files are read.

    Symbolic links are followed, as web servers do. The folder must not be modified during the call.

    Raises:
        ConfigError: the path is not a local folder, or links form a loop.
        StorageError: a folder cannot be listed, or the file cannot be written.
    """
    root = Path(arguments.output_path("index", "folder", folder))
    if not root.is_dir():
        raise ConfigError(f"index: {str(root)!r} is not a local folder")
    try:
        lines, counts = _lines_of(root)
        target, unfinished = root / NAME, root / f"{NAME}.{os.getpid()}.unfinished"
        try:
            unfinished.write_text(_HEAD.format(lines=len(lines)) + "".join(lines), encoding="ascii")
            os.replace(unfinished, target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        shard = str(error.filename or root)
        raise StorageError(f"index: {shard}: {error.strerror or error}", errno=error.errno, shard=shard) from None
    return Listed(str(target), *counts)


def _lines_of(root: Path) -> tuple[list[str], tuple[int, int, int]]:
    lines: list[str] = []
    files = folders = total = 0
    above = [(os.fsencode(root), b"", frozenset[tuple[int, int]]())]
    while above:
        folder, front, parents = above.pop()
        status = os.stat(folder)
        own = status.st_dev, status.st_ino
        if own in parents:
            raise ConfigError(f"index: a link in {os.fsdecode(folder)!r} leads to a folder above it")
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        entries = [entry for entry in entries if front or not entry.name.startswith(NAME.encode())]
        for entry in entries:
            if entry.is_dir():
                above.append((entry.path, front + entry.name + b"/", parents | {own}))
            elif entry.is_file():
                size = entry.stat().st_size
                lines.append(f"{size} {quote(front + entry.name)}\n")
                files, total = files + 1, total + size
        if not entries and front:
            lines.append(f"0 {quote(front)}\n")
            folders += 1
    lines.sort(key=lambda line: line.partition(" ")[2])
    return lines, (files, folders, total)
