# SPDX-License-Identifier: Apache-2.0
"""Reads remote shards of webdataset's pipelines with Feedline's client.

In each worker, this module replaces the stage that opens URLs. webdataset's own code reads the tars, and samples
contain the URL without the prefix, as with curl.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import copy
import functools
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ... import _engine
from ..lowering.datasets import remote_shards

_PIECE = 8 << 20  # bytes per request: at 50 ms and 1 Gbit/s, longer than two round trips
_AHEAD = 2  # requests per shard, so that one is in flight while the other is parsed


class Stream:
    """Reads a stored object from start to end in one thread, with prefetched requests."""

    def __init__(self, url: str) -> None:
        stored = _engine.StoredSource(url)
        self._object = stored.object(stored.names[0])
        self._name = stored.names[0].decode(errors="replace")  # contains no secrets
        self._next = 0
        self._pieces: list[concurrent.futures.Future[bytes]] = []
        self._threads = concurrent.futures.ThreadPoolExecutor(_AHEAD, "feedline-shard")
        self._rest = memoryview(b"")

    def __str__(self) -> str:
        return f"<{self._name}>"

    def read(self, size: int = -1) -> bytes:
        """Returns `size` bytes, or fewer at the end of the object; all remaining bytes if `size` is omitted."""
        parts = []
        wanted = size if size is not None and size >= 0 else self._object.size
        while wanted > 0 and (self._rest or self._take_next()):
            parts.append(self._rest[:wanted])
            self._rest = self._rest[wanted:]
            wanted -= len(parts[-1])
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)

    def _take_next(self) -> bool:
        while self._next < self._object.size and len(self._pieces) < _AHEAD:
            self._pieces.append(self._threads.submit(self._object.read, self._next, _PIECE))
            self._next += _PIECE
        if not self._pieces:
            return False
        piece = self._pieces.pop(0).result()
        self._rest = memoryview(piece)
        return bool(piece)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, RuntimeError):  # partly constructed, or at the interpreter's exit
            self.close()


def _opened(
    samples: Iterable[dict[str, Any]], handler: Callable[[Exception], bool], every: bool
) -> Iterator[dict[str, Any]]:
    """Opens shards that Feedline's client reads; webdataset's url_opener opens the other shards."""
    iterators = importlib.import_module("webdataset.tariterators")
    for sample in samples:
        url = sample["url"]
        if not remote_shards.is_native(url, every):
            yield from iterators.url_opener([sample], handler=handler)
            continue
        plain = remote_shards.plain_url(url)
        try:
            stream = Stream(remote_shards.location(url))
        except Exception as error:
            error.args = (*error.args, plain)
            if handler(error):
                continue
            break
        yield {**sample, "url": plain, "stream": stream}


class OpenShards:
    """Replaces webdataset's StreamingOpen in a pipeline."""

    def __init__(self, original: Any, every: bool) -> None:
        self._original, self._every = original, every

    def __call__(self, shards: Iterable[Any]) -> Iterator[dict[str, Any]]:
        for shard in shards:
            url = shard["url"] if isinstance(shard, dict) else shard
            if remote_shards.is_native(url, self._every):
                yield from _opened([{"url": url}], self._original.handler, self._every)
            else:
                yield from self._original([shard])


def _samples(
    shards: Iterable[Any],
    handler: Any = None,
    select_files: Any = None,
    rename_files: Any = None,
    *,
    every: bool,
) -> Any:
    """webdataset's tarfile_samples, for shards that this module opens."""
    iterators = importlib.import_module("webdataset.tariterators")
    handler = handler or importlib.import_module("webdataset.filters").reraise_exception
    files = iterators.tar_file_expander(
        _opened(shards, handler, every), handler=handler, select_files=select_files, rename_files=rename_files
    )
    return iterators.group_by_keys(files, handler=handler)


def with_native_reads(stages: list[Any], every: bool = False) -> list[Any]:
    """Returns the stages, changed so that this module opens the shards."""
    place = remote_shards.opening_stage(stages) if remote_shards.native_urls(stages, every) else None
    if place is None:
        return list(stages)
    changed = list(stages)
    stage = stages[place]
    if hasattr(stage, "f"):
        changed[place] = copy.copy(stage)
        changed[place].f = functools.partial(_samples, every=every)
    else:
        changed[place] = OpenShards(stage, every)
    return changed
