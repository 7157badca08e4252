# SPDX-License-Identifier: Apache-2.0
"""Uploads files to object storage, using a local spool folder and a thread that sends its files."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from .. import _engine
from ..errors import ConfigError


def is_remote(output: object) -> bool:
    """Whether output to this destination is uploaded."""
    return isinstance(output, str) and output.lower().startswith(("s3://", "gs://"))


@contextmanager
def spool(where: str, purpose: str, folder: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Returns the spool folder for uploads to `purpose`, locked against other processes. The path depends only on
    `purpose`, the user and `folder`.

    The spool folder is in `folder`, or in the system's folder for temporary files, and only this user can read it. The
    contents of an existing spool folder are preserved.
    """
    root = Path(folder if folder is not None else tempfile.gettempdir()) / f"feedline-spool-{os.geteuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    status = root.lstat()
    if root.is_symlink() or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise ConfigError(f"{where}: other users can access {root}; choose another folder with spool=")
    lock_path = root / hashlib.sha256(purpose.encode()).hexdigest()[:16]
    lock_path.mkdir(exist_ok=True)
    handle = os.open(lock_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield lock_path
    except BlockingIOError:
        raise ConfigError(f"{where}: another process on this machine is writing to {purpose}") from None
    finally:
        os.close(handle)


class Uploads:
    """Uploads files one after the other in a thread. On an exception, such as Ctrl-C, the current upload is aborted."""

    def __init__(self, folder: _engine.ObjectFolder) -> None:
        self._folder = folder
        self._pool = ThreadPoolExecutor(1, "feedline-upload")

    def begin(self, files: Sequence[tuple[Path, str]]) -> Future[list[str]]:
        """Sends the files in the given order under the given names. Returns their ETags."""
        return self._pool.submit(lambda: [self._folder.upload(str(file), name) for file, name in files])

    def __enter__(self) -> Uploads:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._folder.cancel()
        self._pool.shutdown(cancel_futures=error is not None)
