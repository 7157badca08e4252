# SPDX-License-Identifier: Apache-2.0
"""Feedline's exceptions, which have the location of the error as attributes, and its warnings."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Base class of Feedline's exceptions.

    ``str(error)`` is one line of text: the error message, then every known part of its location.

    Attributes that do not apply are ``None``.

    Attributes:
        dataset: the argument of :func:`feedline.open`.
        shard: path of the shard or file.
        key: the sample's key: relative path in a folder, or WebDataset key.
        record: index of the sample in the opened dataset, even in a subset or a split of it.
        offset: byte offset in the shard or file.
        stage: ``"storage"``, ``"format"``, ``"decode"``, ``"transform"``, ...
    """

    def __init__(
        self,
        message: str = "",
        *,
        dataset: str | None = None,
        shard: str | None = None,
        key: str | None = None,
        record: int | None = None,
        offset: int | None = None,
        stage: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.dataset = dataset
        self.shard = shard
        self.key = key
        self.record = record
        self.offset = offset
        self.stage = stage

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.__dict__.copy())


class ConfigError(Error, ValueError):
    """An invalid argument or configuration, found before any sample is read."""


class DataError(Error, RuntimeError):
    """A stored sample is damaged or has the wrong type."""


class StorageError(Error, OSError):
    """The operating system failed to open, read or list a file. ``errno`` and ``filename`` are set if known."""

    def __init__(self, message: str = "", *, errno: int | None = None, **place: Any) -> None:
        super().__init__(message, **place)
        self.errno = errno
        self.strerror = message
        self.filename = self.shard

    def __reduce__(self) -> tuple[Any, ...]:
        # OSError keeps these three outside __dict__
        attributes = {**self.__dict__, "errno": self.errno, "strerror": self.strerror, "filename": self.filename}
        return _rebuild, (type(self), self.message, attributes)


class StalledError(Error, TimeoutError):
    """A loader made no progress within the timeout."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.__dict__.copy())


class WorkerDiedError(Error, RuntimeError):
    """A worker process ended unexpectedly. ``pid``, ``exitcode``, ``worker_id`` and ``sample_index`` identify it."""


class RecordError(Error):
    """A file is not a readable run record. The message names the file and the position, and states the remedy."""


class SettingsWarning(UserWarning):
    """Settings need too much memory, or were measured on another machine, for other data, or with another loader."""


def _rebuild(cls: type[Error], message: str, attributes: dict[str, Any]) -> Error:
    error = cls(message)
    for name, value in attributes.items():
        setattr(error, name, value)
    return error
