# SPDX-License-Identifier: Apache-2.0
"""Shard lists written by other programs next to the shards: wids, timm (_info.json) and OpenCLIP (sizes.json).

The type of a list is recognised by its content. Each list contains the number of samples in every shard; these numbers
are verified after opening.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import _engine
from ..errors import ConfigError, DataError

WIDS = "wids-shard-index-v1"
_LOOKED_AT = 4096  # bytes at the start and at the end that are searched for a list's keywords
_MOST_BYTES = 256 << 20  # maximum size of a list; two million shards


class Listed(NamedTuple):
    """A shard: its path or URL, and its number of samples according to the list (None if unknown)."""

    name: str
    samples: int | None


def of(source: str) -> list[Listed] | None:
    """Returns the shards in a list; None if the file is not a list. ``"_info.json#val"`` selects one of timm's splits.

    Raises:
        ConfigError: the list is invalid, or has several splits and none is selected.
        StorageError: the file cannot be read.
    """
    path, _, split = source.partition("#")
    if not path.partition("?")[0].lower().endswith(".json") or "::" in path or path.startswith("pipe:"):
        return None
    text = _text_of(path)
    if text is None:
        return None
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"open: '{path}' looks like a list of shards but is not valid JSON: {error}") from None
    try:
        listed = list(_listed(said, split))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise ConfigError(f"open: the list of shards '{path}' is invalid: {why}") from None
    if not listed:
        raise ConfigError(f"open: the list of shards '{path}' has no shards")
    base = said.get("base") if said.get("__kind__") == WIDS else None
    return [Listed(_next_to(base or path, name, is_folder=bool(base)), count) for name, count in listed]


def check(shards: list[Listed], engine: _engine.Dataset) -> None:
    """Raises DataError if a shard does not contain as many samples as the list states."""
    begin = 0
    for (name, said), end in zip(shards, engine.shard_ends(), strict=False):
        if said is not None and end - begin != said:
            raise DataError(
                f"open: {name}: the shard has {end - begin:,} samples, but its list specifies {said:,}: the list "
                "belongs to a different version of the shard, or one of them is damaged",
                shard=name,
            )
        begin = end


def _text_of(path: str) -> bytes | None:
    stored = _engine.StoredSource(path)
    if len(stored.names) != 1:  # a pattern; lists are passed by name
        return None
    (name,) = stored.names
    if stored.is_folder(name):
        return None
    file = stored.object(name)
    ends = file.read(0, _LOOKED_AT) + file.read(max(0, file.size - _LOOKED_AT), _LOOKED_AT)
    if WIDS.encode() in ends or b'"shardlist"' in ends or b'"splits"' in ends or _begins_as_sizes(ends):
        if file.size <= _MOST_BYTES:
            return file.read(0, file.size)
        raise ConfigError(f"open: the list of shards '{path}' is too large: {file.size:,} bytes")
    return None


def _begins_as_sizes(text: bytes) -> bool:
    """Whether the text begins like OpenCLIP's ``{"00000.tar": 9986, ...``, or is truncated before the number."""
    name, _, rest = text.lstrip().removeprefix(b"{").lstrip().partition(b":")
    is_count = not rest.strip() or rest.lstrip()[:1].isdigit()
    return text.lstrip().startswith(b"{") and name.rstrip().endswith(b'.tar"') and is_count


def _listed(said: Any, split: str) -> Iterator[tuple[str, int | None]]:
    if said.get("__kind__") == WIDS:
        if not said.get("shardlist") and said.get("datasets"):
            raise ValueError("it contains other lists (datasets); open one of these lists")
        for shard in said["shardlist"]:
            yield _name(shard["url"]), _count(shard["nsamples"]) if "nsamples" in shard else None
    elif "shardlist" in said:
        raise ValueError(f"its '__kind__' is {said.get('__kind__')!r}, not '{WIDS}'")
    elif "splits" in said:
        yield from _split_of(said["splits"], split)
    else:
        for name, count in said.items():
            yield _name(name), _count(count)


def _split_of(splits: Any, split: str) -> Iterator[tuple[str, int | None]]:
    if not isinstance(splits, dict) or not splits:
        raise ValueError("it has no splits")
    if not split and len(splits) == 1:
        (split,) = splits
    if split not in splits:
        names = ", ".join(map(repr, splits))
        raise ValueError(f"it has the splits {names}: append one to the path, as '_info.json#{min(splits)}'")
    files, counts = splits[split]["filenames"], splits[split].get("shard_lengths")
    if counts is not None and len(counts) != len(files):
        raise ValueError(f"{len(files)} filenames but {len(counts)} shard_lengths")
    for number, name in enumerate(files):
        yield _name(name), None if counts is None else _count(counts[number])


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value or "::" in value:
        raise ValueError(f"{value!r} is not the name of a shard")
    if value.startswith("pipe:"):
        raise ValueError(f"{value!r} is a command, which is not allowed in a list")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is not a number of samples")
    return value


def _next_to(location: str, name: str, *, is_folder: bool) -> str:
    """Resolves a name relative to a file or folder, and appends the query of the file's URL to the shard's URL."""
    if "://" in name or os.path.isabs(name):
        return name
    front, mark, query = location.partition("?") if "://" in location else (location, "", "")
    return posixpath.join(front if is_folder else posixpath.dirname(front), name) + mark + query
