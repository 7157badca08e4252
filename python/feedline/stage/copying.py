# SPDX-License-Identifier: Apache-2.0
"""Copies one object atomically and verifies the copy."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from pathlib import Path
from typing import NamedTuple

from .. import _engine
from ..errors import DataError, StorageError
from ..pack.sums import Sum, pieces_of

UNFINISHED = ".unfinished"
_SYNC_BYTES = 1 << 20  # smaller files are numerous and quickly copied again


class Wanted(NamedTuple):
    """An object's properties when copying began. `sum` is the object's entry in the manifest."""

    name: bytes
    target: str
    bytes: int
    stamp: int
    sum: Sum | None = None


class Copied(NamedTuple):
    """A journal entry for a copied object."""

    target: str
    bytes: int
    stamp: int
    sha256: str


class Stopped(Exception):
    """Another copy failed, or the user interrupted the call."""


def unfinished(path: Path) -> Path:
    return path.with_name(path.name + UNFINISHED)


def copy_object(source: _engine.StoredSource, wanted: Wanted, path: Path, stop: threading.Event) -> Copied:
    """Writes and verifies a temporary file, whose name is :func:`unfinished` of `path`; the caller renames it.

    Raises StorageError or DataError, or Stopped if `stop` is set; in all of these cases, the file is removed.
    """
    if stop.is_set():
        raise Stopped
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = unfinished(path)
    try:
        sha256 = _written(source, wanted, partial, stop)
        if _sha256_of(partial) != sha256:
            raise StorageError(
                f"stage: {path} does not contain the data written to it; check the disk", shard=str(path)
            )
        if wanted.sum is not None and (wanted.bytes, sha256) != wanted.sum:
            shown = os.fsdecode(wanted.name)
            raise DataError(
                f"stage: {shown} has {wanted.bytes:,} bytes and the SHA-256 {sha256}, but its manifest "
                f"has {wanted.sum.bytes:,} bytes and {wanted.sum.sha256}: copy the shard again from the packed dataset",
                shard=shown,
            )
        return Copied(wanted.target, wanted.bytes, wanted.stamp, sha256)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def _written(source: _engine.StoredSource, wanted: Wanted, partial: Path, stop: threading.Event) -> str:
    stored = source.object(wanted.name)
    if (stored.size, stored.stamp) != (wanted.bytes, wanted.stamp):
        shown = os.fsdecode(wanted.name)
        raise StorageError(f"stage: {shown} has changed since copying began; stage again", shard=shown)
    made = hashlib.sha256()
    try:
        with open(partial, "wb") as file:
            for piece in pieces_of(stored):
                if stop.is_set():
                    raise Stopped
                file.write(piece)
                made.update(piece)
            file.flush()
            if wanted.bytes >= _SYNC_BYTES:
                os.fsync(file.fileno())
    except StorageError:  # of the source
        raise
    except OSError as error:
        raise StorageError(
            f"stage: cannot write {partial}: {error.strerror}. Finished copies are preserved: "
            "the same call resumes after them",
            errno=error.errno,
        ) from error
    stored.check_unchanged()
    return made.hexdigest()


def _sha256_of(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
