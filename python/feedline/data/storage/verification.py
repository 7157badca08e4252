# SPDX-License-Identifier: Apache-2.0
"""Reads the manifests that ``feedline pack`` writes next to its shards, for ``open(verify=...)``."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import _engine
from ...errors import ConfigError, DataError, StorageError
from .. import arguments

MANIFEST = b"feedline-pack.json"
_MOST_BYTES = 1 << 30  # maximum size of a manifest in bytes; the entry of a shard has a few hundred bytes


class Listed(NamedTuple):
    """A shard in a manifest."""

    name: bytes  # as in StoredSource.names
    bytes: int
    sha256: str


def of_open(source: str, verify: Any) -> dict[str, Any]:
    """Returns the engine's options. Raises ConfigError, StorageError or DataError if a manifest is missing, unreadable
    or damaged.
    """
    if verify is None:
        return {}
    word = arguments.choice("open", "verify", verify, ("manifest", "headers"))
    shards = listed_shards(source) if word == "manifest" else []
    # the engine restores the bytes of names that are not UTF-8
    rows = [{**shard._asdict(), "name": shard.name.decode(errors="surrogateescape")} for shard in shards]
    return {"verify": word, "listed_shards": rows}


def listed_shards(source: str) -> list[Listed]:
    """Returns the manifest entries of `source`'s shards; reads one manifest per folder."""
    stored = _engine.StoredSource(source).shards()
    known: dict[bytes, dict[bytes, Listed]] = {}
    found = []
    for name in stored.names:
        if not stored.is_remote and stored.is_folder(name):
            raise ConfigError(
                f'open: verify="manifest" requires shards that feedline pack wrote, and '
                f"'{name.decode(errors='replace')}' is a folder: pass its shards, such as {{000000..000146}}.tar"
            )
        path, query = _split(name)
        folder, slash, last = path.rpartition(b"/")
        if folder + slash not in known:
            known[folder + slash] = _read(stored, folder + slash, query)
        row = known[folder + slash].get(last)
        if row is None:
            raise ConfigError(
                f"open: '{name.decode(errors='replace')}' is missing from feedline-pack.json in the same folder, which "
                'verify="manifest" requires: open the shards that the manifest lists, or use verify=None'
            )
        found.append(row._replace(name=name))
    return found


def _split(name: bytes) -> tuple[bytes, bytes]:
    """Returns a shard's name and its URL's query, which may contain a signature that also applies to the manifest."""
    if not name.startswith((b"http://", b"https://")):
        return name, b""
    path, mark, query = name.partition(b"?")
    return path, mark + query


def _read(stored: _engine.StoredSource, folder: bytes, query: bytes) -> dict[bytes, Listed]:
    shown = (folder + MANIFEST).decode(errors="replace")
    try:
        object = stored.object(folder + MANIFEST + query)
        text = object.read(0, _MOST_BYTES)
    except StorageError as error:
        raise ConfigError(
            f'open: verify="manifest" requires {shown}, which feedline pack writes next to shards, but it '
            f"cannot be read: {error}"
        ) from None
    import json  # imports modules that nothing else needs

    try:
        shards = json.loads(text)["shards"]
        rows = [Listed(shard["name"].encode(), int(shard["bytes"]), str(shard["sha256"])) for shard in shards]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f'open: {shown}, which verify="manifest" reads, is damaged: {error!r}') from None
    return {row.name: row for row in rows}
