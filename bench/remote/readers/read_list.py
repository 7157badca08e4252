# SPDX-License-Identifier: Apache-2.0
"""Parses the list of reads and prints the figures of a reader, like reads.h. Uses only the standard library."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

Read = tuple[str, int, int]  # a URL, and the first and last byte of a range; -1 for the whole object


def requested_reads() -> tuple[int, list[Read]]:
    """Returns the number of concurrent reads, from the command line, and the reads, from standard input."""
    reads = []
    for line in sys.stdin:
        url, *numbers = line.split()
        first, last = map(int, numbers) if numbers else (-1, -1)
        reads.append((url, first, last))
    return int(sys.argv[1]), reads


def bucket_and_key(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.netloc, parts.path.lstrip("/")


class Stopwatch:
    """Measures time and CPU time from its creation."""

    def __init__(self) -> None:
        self._began, self._before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)

    def report(self, bytes_read: int, reads: int) -> None:
        seconds, now = time.perf_counter() - self._began, resource.getrusage(resource.RUSAGE_SELF)
        figures = {
            "bytes": bytes_read,
            "reads": reads,
            "seconds": seconds,
            "user_s": now.ru_utime - self._before.ru_utime,
            "system_s": now.ru_stime - self._before.ru_stime,
        }
        print(json.dumps(figures), flush=True)


def by_threads(read: Callable[[Read], int], at_once: int, reads: Sequence[Read]) -> None:
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda _: None, range(at_once)))  # starts the threads
        stopwatch = Stopwatch()
        got = sum(pool.map(read, reads))
        stopwatch.report(got, len(reads))
