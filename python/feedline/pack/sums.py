# SPDX-License-Identifier: Apache-2.0
"""Reads the manifests next to packed shards: sizes and checksums."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .. import _engine
from ..errors import DataError, StorageError
from .manifest import NAME

_MOST_BYTES = 1 << 30
_PIECE_BYTES = 8 << 20
_ABSENT = (errno.ENOENT, errno.EACCES, errno.ENOTDIR)  # S3 denies access to missing objects if the caller may not list


class Sum(NamedTuple):
    """Size and checksum of a shard when it was packed."""

    bytes: int
    sha256: str


class Sums(NamedTuple):
    """Manifest of one folder of shards."""

    folder: bytes
    shards: dict[str, Sum]  # keyed by name in the folder
    complete: bool


def folder_and_name(name: bytes) -> tuple[bytes, str]:
    """Splits a shard's name into its folder and file name, without the query of a URL."""
    path = name.partition(b"?")[0] if name.startswith((b"http://", b"https://")) else name
    folder, slash, last = path.rpartition(b"/")
    return folder + slash, os.fsdecode(last)


def sums_of(source: _engine.StoredSource, names: Iterable[bytes]) -> dict[bytes, Sums]:
    """Returns manifests by folder; folders without a manifest are omitted. Raises StorageError, or DataError if a
    manifest is damaged.
    """
    found = {folder: _sums_in(source, folder) for folder in {folder_and_name(name)[0] for name in names}}
    return {folder: sums for folder, sums in found.items() if sums is not None}


def _sums_in(source: _engine.StoredSource, folder: bytes) -> Sums | None:
    name = folder + NAME.encode()
    try:
        stored = source.object(name)
        content = json.loads(stored.read(0, min(stored.size, _MOST_BYTES)))
        shards = {shard["name"]: Sum(int(shard["bytes"]), str(shard["sha256"])) for shard in content["shards"]}
        return Sums(folder, shards, bool(content["complete"]))
    except StorageError as error:
        if error.errno in _ABSENT:
            return None
        raise
    except (ValueError, KeyError, TypeError) as error:
        shown = os.fsdecode(name)
        raise DataError(f"{shown} is damaged ({error!r}); copy it again", shard=shown) from None


def sha256_of_stored(stored: _engine.StoredObject) -> str:
    """Returns the checksum of the whole object in hexadecimal. Raises the same StorageError as :func:`pieces_of`."""
    made = hashlib.sha256()
    for piece in pieces_of(stored):
        made.update(piece)
    return made.hexdigest()


def pieces_of(stored: _engine.StoredObject) -> Iterator[bytes]:
    """Yields the whole object in pieces. Raises StorageError if the object is shorter than its reported size."""
    for begin in range(0, stored.size, _PIECE_BYTES):
        want = min(_PIECE_BYTES, stored.size - begin)
        piece = stored.read(begin, want)
        if len(piece) < want:
            end = begin + len(piece)
            raise StorageError(f"the file ends after {end:,} of {stored.size:,} bytes", offset=end)
        yield piece
