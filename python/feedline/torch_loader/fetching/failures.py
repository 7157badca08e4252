# SPDX-License-Identifier: Apache-2.0
"""Errors that workers pass to the training loop, and the report on a worker that died."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import traceback
from typing import Any

from torch._utils import KeyErrorMessage

from ...errors import Error, WorkerDiedError
from ...machine import limits

# AttributeError and NameError have their own __str__ with the same output; an OSError without errno prints them too.
_PRINTS_ARGUMENTS = (BaseException.__str__, AttributeError.__str__, NameError.__str__, OSError.__str__)


class RemoteTraceback(Exception):
    """The cause of an exception from a worker, which shows the worker's traceback."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class Failure:
    """A picklable form of an exception. The text is always passed, but the exception object only if it can be
    pickled.
    """

    def __init__(self, error: BaseException, where: str, worker: int | None, sample: Any, path: str | None) -> None:
        self.words = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.name, self.where = type(error).__name__, where
        self.worker, self.sample, self.path = worker, sample, path
        self.place = _place(sample, path)
        self.pickled = _pickled(error)
        self.summary = f"{type(error).__name__}: {error}"

    def exception(self) -> BaseException:
        """Returns the exception to raise, with torch's message and, if possible, the original type."""
        message = f"Caught {self.name} {self.where}.\nOriginal {self.words}{self.place}"
        error = _revived(self.pickled)
        if error is None:
            error = RuntimeError(message)
        else:
            _say(error, message)
        error.__cause__ = RemoteTraceback(self.words)
        for name, value in (("worker_id", self.worker), ("sample_index", self.sample), ("sample_path", self.path)):
            with contextlib.suppress(Exception):
                setattr(error, name, value)
        return error


def _place(sample: Any, path: str | None) -> str:
    if sample is None:
        return ""
    return f"\nSample: {sample!r:.200}" + (f" (file {path})" if path else "")


def _pickled(error: BaseException) -> tuple[bytes | None, bytes | None]:
    whole = bare = None
    plain = error.with_traceback(None)
    cause, context = plain.__cause__, plain.__context__
    with contextlib.suppress(Exception):
        whole = pickle.dumps(plain)
        pickle.loads(whole)  # an __init__ with other arguments fails only here
    if whole is None or not _loads(whole):
        whole = None
        for attributes in (dict(error.__dict__), {}):
            try:
                bare = pickle.dumps((type(error), error.args, attributes))
                break
            except Exception:
                continue
    plain.__cause__, plain.__context__ = cause, context
    return whole, bare


def _loads(data: bytes) -> bool:
    try:
        return isinstance(pickle.loads(data), BaseException)
    except Exception:
        return False


def _revived(pickled: tuple[bytes | None, bytes | None]) -> BaseException | None:
    whole, bare = pickled
    with contextlib.suppress(Exception):
        if whole is not None:
            error = pickle.loads(whole)
            return error if isinstance(error, BaseException) else None
    with contextlib.suppress(Exception):
        if bare is not None:
            kind, arguments, attributes = pickle.loads(bare)
            error = kind.__new__(kind, *arguments)
            error.args = arguments
            error.__dict__.update(attributes)
            return error if isinstance(error, BaseException) else None
    return None


def _say(error: BaseException, message: str) -> None:
    """Makes the error print `message`. Fields that the error's class defines are preserved."""
    with contextlib.suppress(Exception):
        if isinstance(error, KeyError):
            error.args = (KeyErrorMessage(message),)
        elif isinstance(error, Error):
            error.message = message
        elif isinstance(error, OSError) and error.errno is not None:
            error.strerror = message
        elif isinstance(error, UnicodeError) and hasattr(error, "reason"):
            error.reason = message
        elif isinstance(error, (SyntaxError, ImportError)):
            error.msg = message
        elif type(error).__str__ in _PRINTS_ARGUMENTS:
            error.args = (message,)
    if message not in str(error):
        error.add_note(message)


def sample_path(dataset: Any, index: Any) -> str | None:
    """Returns the file of a sample if the dataset has a list of files, as torchvision's datasets do."""
    with contextlib.suppress(Exception):
        for _ in range(8):
            if hasattr(dataset, "indices") and hasattr(dataset, "dataset"):  # Subset
                dataset, index = dataset.dataset, dataset.indices[index]
            elif hasattr(dataset, "cumulative_sizes") and hasattr(dataset, "datasets"):  # ConcatDataset
                before = 0
                for part, end in zip(dataset.datasets, dataset.cumulative_sizes, strict=True):
                    if index < end:
                        dataset, index = part, index - before
                        break
                    before = end
            else:
                break
        for name in ("samples", "imgs", "paths", "files", "filenames", "image_paths", "img_paths"):
            entries = getattr(dataset, name, None)
            if isinstance(entries, (list, tuple)):
                entry = entries[index]
                entry = entry[0] if isinstance(entry, (list, tuple)) else entry
                if isinstance(entry, (str, os.PathLike)):
                    return os.fspath(entry)
    return None


def died(pid: int, exitcode: int | None, worker: int, rss: int, oom_kills: int | None, sample: str) -> WorkerDiedError:
    """Returns an error for a dead worker, with torch's message followed by details."""
    if exitcode is not None and exitcode < 0:
        try:
            name = signal.strsignal(-exitcode) or signal.Signals(-exitcode).name
        except ValueError:
            name = str(-exitcode)
        first = f"DataLoader worker (pid {pid}) is killed by signal: {name}."
    else:
        first = f"DataLoader worker (pid(s) {pid}) exited unexpectedly with exit code {exitcode}."
    kills = limits.oom_kills()
    if oom_kills is None or kills is None:
        memory = "the cgroup's out-of-memory kill count cannot be read"
    elif kills > oom_kills:
        memory = (
            f"since the workers started, the kernel killed {kills - oom_kills} process(es) of this cgroup for lack of "
            "memory (oom_kill)"
        )
    else:
        memory = "since the workers started, no process of this cgroup was killed because memory ran out (oom_kill +0)"
    error = WorkerDiedError(f"{first} Worker {worker}, {sample}, resident memory {rss:,} bytes; {memory}.")
    error.pid, error.exitcode, error.worker_id = pid, exitcode, worker  # type: ignore[attr-defined]
    return error
