# SPDX-License-Identifier: Apache-2.0
"""Reads a source's files bypassing the page cache: bandwidth of large reads, latency of small reads."""

from __future__ import annotations

import errno
import itertools
import mmap
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from feedline.machine.disks import read_past_cache

LARGE, SMALL = 1 << 20, 4096
_MOST_FILES, _MOST_LOOKED_AT = 256, 4096
_AT_ONCE = 4  # large reads


class NotMeasured(Exception):
    """Reads could not be measured; the message is the reason, as a sentence."""


class Disk:
    """Measures reads of a source's files.

    Raises NotMeasured if there is no file to read, or if the file system cannot bypass the page cache.
    """

    def __init__(self, source: str) -> None:
        found = [
            (path, size) for path, size in itertools.islice(_files(Path(source)), _MOST_LOOKED_AT) if size >= SMALL
        ]
        if not found:
            raise NotMeasured(f"{source} has no file of at least {SMALL} bytes to read")
        random.Random(0).shuffle(found)
        self._files = found[:_MOST_FILES]
        self._places = itertools.cycle(
            [(path, offset) for path, size in self._files for offset in range(0, size, LARGE)]
        )
        self._draw = random.Random(1)
        try:
            self.small()
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise NotMeasured("the file system does not support reads that bypass the page cache") from None
            raise NotMeasured(f"{error.filename}: {error.strerror}") from None

    def large(self) -> float:
        """Returns the bandwidth of a few concurrent large reads, in bytes per second."""
        shares = [[next(self._places) for _ in range(2)] for _ in range(_AT_ONCE)]
        sizes = [0] * _AT_ONCE

        def read(which: int) -> None:
            with mmap.mmap(-1, LARGE) as buffer:
                for path, offset in shares[which]:
                    sizes[which] += read_past_cache(path, buffer, offset)

        begin = time.perf_counter()
        threads = [threading.Thread(target=read, args=(which,)) for which in range(_AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(sizes) / max(time.perf_counter() - begin, 1e-9)

    def small(self) -> float:
        """Returns the latency in milliseconds of one small read at a random offset, including the time to open the
        file.
        """
        path, size = self._draw.choice(self._files)
        offset = self._draw.randrange(max(size // SMALL, 1)) * SMALL
        with mmap.mmap(-1, SMALL) as buffer:
            begin = time.perf_counter()
            read_past_cache(path, buffer, offset)
            return 1000 * (time.perf_counter() - begin)


def _files(source: Path) -> Iterator[tuple[str, int]]:
    """Yields the files of a folder in any order, or the file itself; skips unreadable files."""
    if source.is_file():
        yield str(source), source.stat().st_size
        return
    for folder, _, names in os.walk(source):
        for name in names:
            path = os.path.join(folder, name)
            try:
                yield path, os.stat(path).st_size
            except OSError:
                continue
