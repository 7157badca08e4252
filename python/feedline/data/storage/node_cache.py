# SPDX-License-Identifier: Apache-2.0
"""Node-local cache of stored objects: the arguments of ``open(cache=...)``, and verification.

Decoded pixels are cached by :meth:`feedline.Dataset.cache` instead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import _engine
from ...errors import ConfigError
from .. import arguments

DEFAULT_LIMIT = "50%"


class Limit(NamedTuple):
    """Size limit of a cache: ``bytes``, or, if ``bytes`` is 0, the fraction ``share`` of the disk space that would be
    free without the cache.
    """

    bytes: int
    share: float


def folder(where: str, value: Any) -> str:
    """Returns the folder of a cache, which need not exist."""
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else value
    if not isinstance(path, str) or not path:
        raise ConfigError(f"{where}: cache must be a folder, not {value!r}")
    if path in ("memory", "device"):
        raise ConfigError(
            f"{where}: cache is a folder for copies of stored files; to cache decoded pixels, call "
            f".cache({path!r}) after the operations"
        )
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path):
        raise ConfigError(f"{where}: cache {path!r} is a URL; pass a local folder")
    return path


def limit(where: str, value: Any) -> Limit:
    """Parses ``"500 GiB"``, a number of bytes, or ``"50%"`` of the disk space that would be free without the cache."""
    percent = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value) if isinstance(value, str) else None
    if percent is None:
        try:
            return Limit(arguments.byte_count(where, "cache_limit", value), 0.0)
        except ConfigError as error:
            raise ConfigError(f'{error}; or pass a share of the disk, such as "50%"') from None
    share = float(percent[1]) / 100
    if not 0 < share <= 1:
        raise ConfigError(f"{where}: cache_limit must be more than 0% and no more than 100%, not {value!r}")
    return Limit(0, share)


def of_open(cache: Any, cache_limit: Any) -> dict[str, Any]:
    """Returns the engine's options for the cache; an empty dict if there is no cache."""
    if cache is None:
        if cache_limit is not None:
            raise ConfigError("open: cache_limit requires cache, the folder for copies")
        return {}
    size, share = limit("open", DEFAULT_LIMIT if cache_limit is None else cache_limit)
    return {"cache_directory": folder("open", cache), "cache_limit": {"bytes": size, "share": share}}


class Damage(NamedTuple):
    """A damaged copy."""

    name: str
    bytes: int
    what: str


def verify(path: str, progress: Callable[[int, int], None] = lambda done, total: None) -> tuple[int, list[Damage]]:
    """Verifies every copy's checksum and removes damaged copies; returns the number of copies and the damaged
    copies.
    """
    copies = _engine.list_cache(path).objects
    damaged = []
    for done, copy in enumerate(copies):
        progress(done, len(copies))
        what = _engine.verify_copy(path, copy.copy)
        if what:
            damaged.append(Damage(copy.name, copy.bytes, what))
    progress(len(copies), len(copies))
    return len(copies), damaged
