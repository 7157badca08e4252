# SPDX-License-Identifier: Apache-2.0
"""Copies of whole stored objects in a folder of this machine: what ``open(cache=...)`` says of them, and their upkeep.

Pixels that were decoded once are something else: :meth:`feedline.Dataset.cache`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _engine
from ..errors import ConfigError
from . import arguments

DEFAULT_LIMIT = "50%"


class Limit(NamedTuple):
    """Bytes, or where they are 0 a share of what the disk has free, with what the cache holds."""

    bytes: int
    share: float


def folder(where: str, value: Any) -> str:
    """The folder of a cache, which need not be there."""
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else value
    if not isinstance(path, str) or not path:
        raise ConfigError(f"{where}: cache must be a folder, not {value!r}")
    if path in ("memory", "device"):
        raise ConfigError(
            f"{where}: cache is a folder for copies of what is stored; decoded pixels are kept by "
            f".cache({path!r}) behind the operations"
        )
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path):
        raise ConfigError(f"{where}: cache {path!r} is a URL; copies are kept on this machine: give a folder of it")
    return path


def limit(where: str, value: Any) -> Limit:
    """``"500 GiB"``, a number of bytes, or ``"50%"`` of what the disk would have free without the cache."""
    percent = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value) if isinstance(value, str) else None
    if percent is None:
        try:
            return Limit(arguments.byte_count(where, "cache_limit", value), 0.0)
        except ConfigError as error:
            raise ConfigError(f'{error}; or a share of the disk such as "50%"') from None
    share = float(percent[1]) / 100
    if not 0 < share <= 1:
        raise ConfigError(f"{where}: cache_limit must be more than 0% and no more than 100%, not {value!r}")
    return Limit(0, share)


def of_open(cache: Any, cache_limit: Any) -> tuple[str, int, float]:
    """The engine's arguments: folder, bytes, share."""
    if cache is None:
        if cache_limit is not None:
            raise ConfigError("open: cache_limit is about cache, the folder for copies, which is not given")
        return "", 0, 0.0
    return folder("open", cache), *limit("open", DEFAULT_LIMIT if cache_limit is None else cache_limit)


class Damage(NamedTuple):
    """A copy that was not what was written."""

    name: str
    bytes: int
    what: str


def verify(path: str, progress: Callable[[int, int], None] = lambda done, total: None) -> tuple[int, list[Damage]]:
    """Compares every copy with its checksum, and removes what is damaged; gives how many there were, and these."""
    copies = _engine.list_cache(path).objects
    damaged = []
    for done, copy in enumerate(copies):
        progress(done, len(copies))
        what = _engine.verify_copy(path, copy.copy)
        if what:
            damaged.append(Damage(copy.name, copy.bytes, what))
    progress(len(copies), len(copies))
    return len(copies), damaged
