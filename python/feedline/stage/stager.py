# SPDX-License-Identifier: Apache-2.0
"""Staging: lists objects, checks the free space, and copies the objects in several threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Literal, NamedTuple

from .. import _engine
from ..data import arguments
from ..data.source_spec import SourceSpec
from ..data.sources import annotations_of, spec_of
from ..errors import ConfigError, DataError
from ..machine import limits as host_limits
from ..pack.manifest import NAME as MANIFEST
from ..pack.sums import folder_and_name, sums_of
from ..record.journal import Journal
from .copying import Copied, Stopped, Wanted, copy_object, unfinished
from .layout import Layout, layout_of
from .room import check_room

JOURNAL = ".feedline-stage"
_LEAST_THREADS = 4  # copies mostly wait for I/O


class Staged(NamedTuple):
    """The result of staging: the contents of the folder."""

    source: str
    folder: str
    opens: str  # for feedline.open
    samples: int
    files: int
    files_found: int  # objects that an earlier call had copied
    bytes: int
    copied_bytes: int


def stage(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    *,
    format: str | None = None,
    fields: str | Sequence[str] | None = None,
    split: str | None = None,
    config: str | None = None,
    limit: int | str | None = None,
    num_workers: int | Literal["auto"] = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> Staged:
    """Copies a dataset into a local folder, which then opens with the same samples in the same order.

    Every file is read back and compared with the received data, and with its checksum if `feedline pack` wrote a
    manifest. After an interruption, the same call resumes; other files are never replaced.

    Args:
        source, format, fields, split, config: as in :func:`feedline.open`: class folders or shards, local or remote.
        folder: local folder, which is created if its parent exists.
        limit: maximum size, in bytes or as "500 GiB".
        num_workers: number of threads; "auto" uses one per usable CPU, but at least 4.
        progress: function that is called with the number of bytes copied so far and the total number of bytes.

    Raises:
        ConfigError: an argument is wrong, the dataset is larger than `limit`, or a file from another program exists at
            a copy's path.
        StorageError: there is not enough space, the source cannot be read or has changed, or the folder cannot be
            written.
        DataError: a shard does not match its manifest, or the copy cannot be opened.
    """
    annotations = annotations_of("stage", None, split, None, config)
    spec = spec_of(source, format, fields, None, "error", annotations=annotations)
    if spec.annotations:
        raise ConfigError(
            f"stage: split={split!r} applies to datasets on the Hub; of annotated images, stage all files of the folder"
        )
    staged = Path(arguments.output_path("stage", "folder", folder))
    most = None if limit is None else arguments.byte_count("stage", "limit", limit)
    threads = _threads(num_workers)
    stored = _engine.StoredSource(spec.source).shards()
    layout = layout_of(spec, stored)
    with ThreadPoolExecutor(threads, "feedline-stage") as pool:
        wanted = _wanted(stored, layout, pool)
        staged.mkdir(exist_ok=True)
        with Journal(staged / JOURNAL, {"feedline_stage": 1, "source": _nameless(stored)}, "stage") as journal:
            copies = _Copies(stored, staged, journal, progress or (lambda done, total: None))
            copied = copies.make(wanted, most, pool)
    opened = "::".join(str(staged / part) if part else str(staged) for part in layout.opened)
    return Staged(
        source=spec.source,
        folder=str(staged),
        opens=opened,
        samples=_samples_in(opened, spec, layout),
        files=len(wanted),
        files_found=len(wanted) - copied.files,
        bytes=sum(one.bytes for one in wanted),
        copied_bytes=copied.bytes,
    )


def _threads(num_workers: Any) -> int:
    if num_workers == "auto":
        return max(_LEAST_THREADS, host_limits.usable_cpus())
    return arguments.integer("stage", "num_workers", num_workers, 1)


def _nameless(stored: _engine.StoredSource) -> str:
    """Returns the journal's header, without secrets from URLs."""
    names = stored.names
    return f"{os.fsdecode(names[0])} and {len(names) - 1:,} more"


def _wanted(stored: _engine.StoredSource, layout: Layout, pool: ThreadPoolExecutor) -> list[Wanted]:
    """Returns the objects with their sizes, and the shards' manifests."""
    of_shards = layout.samples is None
    sums = sums_of(stored, layout.objects) if of_shards else {}

    def seen(name: bytes) -> Wanted:
        one = stored.object(name)
        folder, last = folder_and_name(name)
        known = sums[folder].shards.get(last) if folder in sums else None
        return Wanted(name, layout.objects[name], one.size, one.stamp, known)

    wanted = list(pool.map(seen, layout.objects))
    for folder in sums:
        neighbour = next(one for one in wanted if folder_and_name(one.name)[0] == folder)
        manifest = stored.object(folder + MANIFEST.encode())
        target = os.path.join(os.path.dirname(neighbour.target), MANIFEST)
        wanted.append(Wanted(folder + MANIFEST.encode(), target, manifest.size, manifest.stamp))
    return wanted


class _Copied(NamedTuple):
    files: int
    bytes: int


class _Copies:
    """Copies missing objects."""

    def __init__(
        self,
        stored: _engine.StoredSource,
        folder: Path,
        journal: Journal,
        progress: Callable[[int, int], None],
    ) -> None:
        self._stored, self._folder, self._journal = stored, folder, journal
        self._progress = progress
        self._there = {line["target"]: Copied(**line) for line in journal.lines}
        self._lock = threading.Lock()
        self._done = 0
        self._stop = threading.Event()
        self._error: BaseException | None = None

    def make(self, wanted: list[Wanted], limit: int | None, pool: ThreadPoolExecutor) -> _Copied:
        missing = [one for one in wanted if not self._is_there(one)]
        needed, total = sum(one.bytes for one in missing), sum(one.bytes for one in wanted)
        for one in missing:
            unfinished(self._folder / one.target).unlink(missing_ok=True)
        check_room(needed, self._folder, limit)
        self._done = total - needed
        self._progress(self._done, total)
        futures = [pool.submit(self._copy, one, total) for one in missing]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            self._stop.set()
            wait(futures)  # the threads write to the journal
        if self._error is not None:
            raise self._error
        return _Copied(len(missing), needed)

    def _is_there(self, one: Wanted) -> bool:
        """Raises ConfigError for a file that no earlier call created."""
        path = self._folder / one.target
        copied = self._there.get(one.target)
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return False
        if copied is None:
            raise ConfigError(
                f"stage: {path} exists and was not staged by this source; choose another folder, or remove it"
            )
        return (copied.bytes, copied.stamp) == (one.bytes, one.stamp) and size == one.bytes

    def _copy(self, one: Wanted, total: int) -> None:
        path = self._folder / one.target
        try:
            copied = copy_object(self._stored, one, path, self._stop)
            with self._lock:  # order matters: a file with its final name is in the journal
                self._journal.append(copied._asdict())
                os.replace(unfinished(path), path)
                self._done += one.bytes
                self._progress(self._done, total)
        except Stopped:
            return
        except BaseException as error:
            self._error = self._error or error
            self._stop.set()
            raise


def _samples_in(opened: str, spec: SourceSpec, layout: Layout) -> int:
    """Opens the copy; this also stores the indexes next to the copy."""
    samples = len(spec._replace(source=opened).open())
    if layout.samples is not None and samples != layout.samples:
        raise DataError(
            f"stage: the source has {layout.samples:,} samples, but {opened} has {samples:,}; stage it again"
        )
    return samples
