# SPDX-License-Identifier: Apache-2.0
"""Writes prefetched samples into one shard after another."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from ..errors import DataError, StorageError
from .destinations import Destination
from .layouts import Layout, ShardWriter
from .manifest import NAME, UNFINISHED_NAME, Manifest, Shard, Skipped
from .mds_columns import Content
from .source import Packed, Source
from .work import Work

_AHEAD_PER_THREAD = 4  # samples that are prefetched for the shard's writer


def write_shards(
    source: Source,
    destination: Destination,
    folder: Path,
    own: str,
    manifest: Manifest,
    work: Work,
    on_error: str,
    threads: int,
    progress: Callable[[int, int], None],
) -> None:
    writer = _Writer(source.layout, destination, folder, own, manifest, work)
    first, total = manifest.end(work.first), work.end - work.first
    progress(first - work.first, total)
    try:
        manifest.save(destination, own)
        for packed in _in_order(source, first, work.end, threads):
            if packed.error is not None:
                if on_error == "raise":
                    raise packed.error
                writer.skip(packed)
            else:
                writer.add(packed)
            progress(packed.position + 1 - work.first, total)
        writer.finish()
    except StorageError:
        raise
    except OSError as error:  # an output error: reading raises StorageError
        raise StorageError(
            f"pack: cannot write into {folder}: {error.strerror}. Finished shards are complete: the same call resumes "
            "after them"
        ) from error
    finally:
        writer.abandon()


def _in_order(source: Source, first: int, end: int, threads: int) -> Iterator[Packed]:
    """Yields samples from position ``first`` on, prefetched by several threads."""
    waiting: deque[Future[Packed]] = deque()
    with ThreadPoolExecutor(threads, "feedline-pack") as pool:
        try:
            for position, index in source.order(first, end):
                waiting.append(pool.submit(source.read, position, index))
                if len(waiting) > threads * _AHEAD_PER_THREAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


class _Writer:
    """Fills shards in sequence. A shard is added to the manifest once it and all earlier shards are in their final
    locations.
    """

    def __init__(
        self, layout: Layout, destination: Destination, folder: Path, own: str, manifest: Manifest, work: Work
    ) -> None:
        self._layout, self._place, self._folder, self._own = layout, destination, folder, own
        self._manifest = manifest
        self._work = work
        self._number = work.number + len(manifest.shards)
        self._first = manifest.end(work.first)
        self._file: ShardWriter | None = None
        self._keys: set[str] = set()
        self._last: Content = []  # within the shard
        self._now = Shard("", 0, 0, 0, 0, "", 0, 0, 0, 0)
        self._skipped: list[Skipped] = []  # since the last shard, not yet in the manifest
        self._sent: tuple[Future[str], Shard, list[Skipped]] | None = None

    def skip(self, packed: Packed) -> None:
        self._skipped.append(Skipped(packed.position, packed.key, str(packed.error)))
        self._close_where_planned(packed.position + 1)

    def add(self, packed: Packed) -> None:
        limit = self._manifest.arguments["shard_bytes"] if self._work.ends is None else None
        taken = self._layout.taken(packed.content)
        if self._file is not None and limit is not None and self._file.bytes + taken > limit:
            self._close_shard(packed.position)
        if self._file is None:
            self._file = self._layout.begin(self._folder / self._layout.shard_name(self._number))
            self._now = Shard(self._file.path.name, self._first, self._first, 0, 0, "", 0, 0, 0, 0)
            self._keys.clear()
        if self._layout.keys_differ and packed.key in self._keys:
            raise DataError(
                f"pack: two samples with the key '{packed.key}' would be in one shard; give them different keys, or "
                "pack their tars into separate folders",
                key=packed.key,
            )
        self._keys.add(packed.key)
        self._last = packed.content
        self._file.take(packed.content)
        self._now = replace(
            self._now,
            samples=self._now.samples + 1,
            files=self._now.files + packed.files,
            rewritten=self._now.rewritten + packed.rewritten,
            bytes_before=self._now.bytes_before + packed.bytes_before,
            bytes_after=self._now.bytes_after + packed.bytes_after,
        )
        if self._work.ends is not None:
            self._close_where_planned(packed.position + 1)
        elif self._now.samples == self._manifest.arguments["samples_per_shard"]:
            self._close_shard(packed.position + 1)

    def finish(self) -> None:
        if self._file is not None:
            self._close_shard(self._work.end)
        self._settle()
        self._manifest.skipped += self._skipped
        self._manifest.complete = True
        if self._work.part is None:
            self._layout.complete(self._place, self._manifest)
        if self._own != UNFINISHED_NAME:
            self._manifest.save(self._place, self._own)
            return
        self._manifest.marks = {}
        self._manifest.save(self._place, NAME)
        self._place.remove(UNFINISHED_NAME)

    def abandon(self) -> None:
        if self._file is not None:
            self._file.discard()
            self._file = None

    def _close_where_planned(self, end: int) -> None:
        ends = self._work.ends
        if ends is None or end != ends[self._number - self._work.number]:
            return
        if self._file is None:
            raise DataError(
                f"pack: every sample of shard {self._number:06d} was skipped, and ranges of shards cannot have gaps; "
                "repair "
                f"the source. The last one: {self._skipped[-1].why}"
            )
        self._close_shard(end)

    def _close_shard(self, end: int) -> None:
        file = self._file
        assert file is not None
        digest = file.commit()
        self._file = None
        if self._place.is_remote:
            os.utime(file.path, ns=(1, 1))  # the index contains it, and must be reproducible
        self._layout.finished(file.path, self._last)
        self._settle()
        finished = replace(self._now, end=end, bytes=file.bytes, sha256=digest, entry=file.entry)
        self._sent = (self._place.keep(file.path), finished, self._skipped)
        self._skipped = []
        self._number, self._first = self._number + 1, end
        if not self._place.is_remote:
            self._settle()

    def _settle(self) -> None:
        """Waits for the shard that is being moved to its final location."""
        if self._sent is None:
            return
        stored, shard, skipped = self._sent
        mark = stored.result()
        self._sent = None
        if mark:
            self._manifest.marks[shard.name] = mark
        self._manifest.shards.append(shard)
        self._manifest.skipped += skipped
        self._manifest.save(self._place, self._own)
