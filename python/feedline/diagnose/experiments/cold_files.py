# SPDX-License-Identifier: Apache-2.0
"""Keeps a dataset's files out of the page cache while a ladder is climbed.

A run that read its files from the disk for the first time left them in the page cache: rungs would read them from there
and answer another question. So each file's pages are dropped as it is opened, by the hook that hears of it.
"""

from __future__ import annotations

import os
import threading

from feedline import _engine
from feedline.watching.probe.opened_files import OpenedFiles, open_for_reading

MOST_BYTES = 1 << 30
_STILL_CACHED = 0.5


class ColdFiles:
    """What `OpenedFiles.collected` takes paths by. Forked workers go on with a copy.

    Files are on a local disk, and nothing of them waits to be written. The kernel keeps what anybody has mapped.
    """

    def __init__(self) -> None:
        self.warm_because: str | None = None  # why some were left in the page cache
        self._may: dict[str, bool] = {}
        self._bytes = 0
        self._dropping = threading.local()  # opening a file to drop it is heard of, too

    def add(self, path: str) -> None:
        """Before the file is read."""
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
        """Files that stay open are not opened again: called before each rung."""
        paths = open_for_reading()
        for path in paths:
            self.add(path)
        left = [facts for facts in _engine.look_at_files(sorted(paths)) if self._may.get(facts["path"])]
        if sum(facts["cached_bytes"] or 0 for facts in left) > _STILL_CACHED * sum(facts["bytes"] for facts in left):
            self.warm_because = "the page cache kept files that are mapped"


def drop(path: str) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def listen(opened: OpenedFiles, cold: bool) -> ColdFiles | None:
    """From here on files are cold, if they are to be; `opened.collected` = None ends it."""
    if not cold:
        return None
    opened.collected = files = ColdFiles()
    return files
