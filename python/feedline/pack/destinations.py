# SPDX-License-Identifier: Apache-2.0
"""Destinations for shards: a local folder, or a prefix in a bucket.

Both store manifests by name and replace them atomically. In a folder, shards are written in place. For a bucket, a
shard is written to a spool folder, and a thread uploads it while the next shard is written, so that at most two shards
are local.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from .. import _engine
from ..errors import ConfigError, DataError, StorageError
from ..machine.uploading import Uploads, is_remote, spool
from .manifest import NAME
from .shard_file import UNFINISHED, sha256_of, write_durably

_MOST_BYTES = 1 << 30  # maximum size of a manifest


class Stored(Protocol):
    """Evidence of a stored shard: see :class:`feedline.pack.manifest.Shard`."""

    @property
    def name(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def sha256(self) -> str: ...


class Destination(Protocol):
    """The packer's output."""

    shown: str  # for messages, and the prefix of a shard's name when opening it
    is_remote: bool

    def names(self) -> list[str]:
        """Returns the names of all files in the destination. Raises StorageError, for example if the bucket does not
        exist.
        """

    def opened(self, own: str) -> contextlib.AbstractContextManager[Path]:
        """Locks and returns the folder in which shards are written; `own` is the name of their manifest."""

    def read(self, name: str) -> bytes | None:
        """Reads a manifest; None if there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Writes a manifest durably."""

    def remove(self, name: str) -> None: ...

    def keep(self, shard: Path) -> Future[str]:
        """Moves a finished shard to its final location; the result of the future is the shard's mark."""

    def verify(self, shards: Iterable[Stored], marks: dict[str, str]) -> None:
        """Raises DataError unless each shard is unchanged; `marks` are the results of `keep()`."""

    def clear(self, shards: Iterable[str]) -> None:
        """Removes unfinished files of these shards, which a killed process left."""


def destination_of(output: str, spool_folder: str | os.PathLike[str] | None = None) -> Destination:
    """Makes no request. Raises ConfigError for a URL that cannot be written."""
    return Bucket(output, spool_folder) if is_remote(output) else Folder(Path(output))


class Folder:
    """A local or shared folder."""

    is_remote = False

    def __init__(self, path: Path) -> None:
        self._path, self.shown = path, str(path)

    def names(self) -> list[str]:
        try:
            return sorted(os.listdir(self._path))
        except FileNotFoundError:
            return []

    @contextmanager
    def opened(self, own: str) -> Iterator[Path]:
        """Locks the folder, which ranges of shards share, and the range. If the process dies, both locks are
        released.
        """
        self._path.mkdir(exist_ok=True)
        with ExitStack() as held:
            held.enter_context(self._locked(self._path, fcntl.LOCK_EX if own == NAME else fcntl.LOCK_SH))
            if own != NAME:
                lock = self._path / (own + ".lock")
                lock.touch()
                held.enter_context(self._locked(lock, fcntl.LOCK_EX))
                held.callback(lock.unlink, missing_ok=True)
            yield self._path

    @contextmanager
    def _locked(self, path: Path, how: int) -> Iterator[None]:
        handle = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise ConfigError(
                f"pack: another process is packing into {self.shown}; wait for it, or choose another folder"
            ) from None
        finally:
            os.close(handle)

    def read(self, name: str) -> bytes | None:
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        write_durably(self._path / name, content)

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)

    def keep(self, shard: Path) -> Future[str]:
        done: Future[str] = Future()
        done.set_result("")
        return done

    def verify(self, shards: Iterable[Stored], marks: dict[str, str]) -> None:
        for shard in shards:
            path = self._path / shard.name
            try:
                same = path.stat().st_size == shard.bytes and sha256_of(path) == shard.sha256
            except FileNotFoundError:
                raise _missing(str(path), self.shown) from None
            if not same:
                raise _changed(str(path), self.shown)

    def clear(self, shards: Iterable[str]) -> None:
        for name in shards:
            (self._path / (name + UNFINISHED)).unlink(missing_ok=True)


class Bucket:
    """A prefix in a bucket. There are no locks: two machines that pack the same shards would duplicate the work."""

    is_remote = True

    def __init__(self, url: str, spool_folder: str | os.PathLike[str] | None) -> None:
        self._stored = _engine.ObjectFolder(url)
        self.shown = self._stored.url
        self._reads = _engine.StoredSource(self.shown)
        self._spool_folder = spool_folder
        self._uploads: Uploads | None = None

    def names(self) -> list[str]:
        try:
            return [name for name, *_ in self._stored.entries()]
        except StorageError as error:
            raise StorageError(
                f"pack: cannot list {self.shown}: {error.message}. The bucket must exist, and the keys need "
                "s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload",
                errno=error.errno,
                shard=self.shown,
                stage="storage",
            ) from None

    @contextmanager
    def opened(self, own: str) -> Iterator[Path]:
        with spool("pack", f"{self.shown}/{own}", self._spool_folder) as folder:
            try:
                _empty(folder)  # left by a killed process
                with Uploads(self._stored) as self._uploads:
                    yield folder
            finally:
                self._uploads = None
                _empty(folder)

    def read(self, name: str) -> bytes | None:
        try:
            stored = self._reads.object(f"{self.shown}/{name}".encode())
            return stored.read(0, min(stored.size, _MOST_BYTES))
        except StorageError as error:
            if error.errno == errno.ENOENT:
                return None
            raise

    def write(self, name: str, content: bytes) -> None:
        self._stored.put(name, content)

    def remove(self, name: str) -> None:
        self._stored.remove(name)

    def keep(self, shard: Path) -> Future[str]:
        assert self._uploads is not None
        completed: Future[str] = Future()

        def finish(sent: Future[list[str]]) -> None:
            shard.unlink(missing_ok=True)
            error = sent.exception() if not sent.cancelled() else StorageError("the upload was cancelled")
            completed.set_exception(error) if error else completed.set_result(sent.result()[0])

        # without its index, which is valid only for this file's modification time
        self._uploads.begin([(shard, shard.name)]).add_done_callback(finish)
        return completed

    def verify(self, shards: Iterable[Stored], marks: dict[str, str]) -> None:
        stored = {name: (size, etag) for name, size, etag, _ in self._stored.entries()}
        for shard in shards:
            name = f"{self.shown}/{shard.name}"
            if shard.name not in stored:
                raise _missing(name, self.shown)
            size, etag = stored[shard.name]
            if size != shard.bytes or etag != marks.get(shard.name, etag):
                raise _changed(name, self.shown)

    def clear(self, shards: Iterable[str]) -> None:
        with contextlib.suppress(StorageError):  # listing them requires another permission; readers cannot see them
            self._stored.abort_unfinished(list(shards))


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _missing(name: str, location: str) -> DataError:
    return DataError(f"pack: {name} is missing; remove {location} and start again", shard=name)


def _changed(name: str, location: str) -> DataError:
    return DataError(f"pack: {name} has changed since it was packed; remove {location} and start again", shard=name)
