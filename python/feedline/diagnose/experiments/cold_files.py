# SPDX-License-Identifier: Apache-2.0
"""Evicts a dataset's files from the page cache while settings are measured.

After a run, the files that it read from disk are in the page cache, so measurements would read them from there.
Therefore the probe's open hook evicts each file's pages when the file is opened.
"""

from __future__ import annotations

import os
import threading

from feedline import _engine
from feedline.profiler.probe.opened_files import OpenedFiles, open_for_reading

MOST_BYTES = 1 << 30
_STILL_CACHED = 0.5


class ColdFiles:
    """Receives the paths of opened files as `OpenedFiles.collected`. Each forked worker uses its own copy of this
    object.

    Evicts only clean files on local disks. The kernel does not evict pages that any process has mapped.
    """

    def __init__(self) -> None:
        self.warm_because: str | None = None  # reason why some files remained in the page cache
        self._may: dict[str, bool] = {}
        self._bytes = 0
        self._dropping = threading.local()  # opening a file to evict it triggers the hook, too

    def add(self, path: str) -> None:
        """Evicts a file before it is read."""
        if getattr(self._dropping, "now", False):
            return
        self._dropping.now = True
        try:
            may = self._may.get(path)
            if may is None:
                may = self._may[path] = self._look(path)
            if may:
                drop(path)
        finally:
            self._dropping.now = False

    def _look(self, path: str) -> bool:
        facts = next(iter(_engine.look_at_files([path])), None)
        if facts is None or not facts["device"] or facts["unwritten_bytes"]:
            return False
        self._bytes += facts["bytes"]
        if self._bytes > MOST_BYTES:
            self.warm_because = "more than 1 GiB of files was read"
        return self._bytes <= MOST_BYTES

    def drop_open(self) -> None:
        """Evicts files that stay open, because the open hook does not see them again. Called before each
        measurement.
        """
        paths = open_for_reading()
        for path in paths:
            self.add(path)
        left = [facts for facts in _engine.look_at_files(sorted(paths)) if self._may.get(facts["path"])]
        if sum(facts["cached_bytes"] or 0 for facts in left) > _STILL_CACHED * sum(facts["bytes"] for facts in left):
            self.warm_because = "mapped files stay in the page cache"


def drop(path: str) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def listen(opened: OpenedFiles, cold: bool) -> ColdFiles | None:
    """Starts evicting files if `cold` is true. To stop, set `opened.collected` to None."""
    if not cold:
        return None
    opened.collected = files = ColdFiles()
    return files
