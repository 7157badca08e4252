# SPDX-License-Identifier: Apache-2.0
"""Measures the disk with short reads of the dataset's files that bypass the page cache. Writes nothing.

Two metrics distinguish a saturated disk from a slow one: the bandwidth with several large reads in flight, and the
latency of a single small read.
"""

from __future__ import annotations

import errno
import itertools
import mmap
import random
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from feedline.machine.disks import read_past_cache
from feedline.profiler.experiments import DiskProbe
from feedline.profiler.intervals import interval, rate_interval

_LARGE, _SMALL = 1 << 20, 4096
_THREADS = 4
_SEQUENTIAL_S, _RANDOM_S = 0.8, 0.4
_FEWEST = 8  # minimum number of reads for a figure
_MOST_PIECES, _MOST_SMALL = 16384, 5000


def probe(facts: Sequence[Mapping[str, Any]], seconds: float = _SEQUENTIAL_S + _RANDOM_S) -> DiskProbe:
    """Probes files returned by `_engine.look_at_files` for `seconds`, and then until reads in flight finish. Never
    raises.
    """
    devices = [f["device"] for f in facts if f["device"]]
    if not facts:
        return DiskProbe(refused="no file was opened while samples were read")
    if not devices:
        return DiskProbe(refused="the dataset's files are not on a local disk")
    device = max(set(devices), key=devices.count)
    files = [f for f in facts if f["device"] == device and f["bytes"] >= _SMALL]
    if not files:
        return DiskProbe(device=device, refused="the files are smaller than a block")
    part = _SEQUENTIAL_S / (_SEQUENTIAL_S + _RANDOM_S)
    try:
        reads = _together(_pieces_of(files), seconds * part)
        latencies = _one_by_one(files, seconds * (1 - part))
    except OSError as error:
        reason = "the file system does not support direct I/O" if error.errno == errno.EINVAL else str(error)
        return DiskProbe(device=device, refused=reason)
    if len(reads) < _FEWEST or len(latencies) < _FEWEST:
        return DiskProbe(device=device, refused="too few reads finished in time")
    rate, low, high = rate_interval(reads)
    latency, latency_low, latency_high = interval(latencies)
    mean = sum(size for _, size in reads) / len(reads)
    return DiskProbe(len(files), device, rate, low, high, mean, latency, latency_low, latency_high)


def _pieces_of(files: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """Divides files into pieces; files are in random order, the pieces of a file in sequence."""
    order = list(files)
    random.Random(1).shuffle(order)
    pieces = [(f["path"], offset) for f in order for offset in range(0, f["bytes"], _LARGE)]
    return pieces[:_MOST_PIECES]


def _together(pieces: Sequence[tuple[str, int]], seconds: float) -> list[tuple[float, float]]:
    """Returns (time, bytes) of each read, ordered by time; each thread cycles through its share of `pieces`."""
    reads: list[tuple[float, float]] = []
    failures: list[OSError] = []
    until = time.perf_counter() + seconds

    def read(share: Sequence[tuple[str, int]]) -> None:
        try:
            with mmap.mmap(-1, _LARGE) as buffer:
                for path, offset in itertools.cycle(share):
                    size = read_past_cache(path, buffer, offset)
                    reads.append((time.perf_counter(), float(size)))
                    if reads[-1][0] > until:
                        return
        except OSError as error:
            failures.append(error)

    size = -(-len(pieces) // _THREADS)
    shares = [pieces[first : first + size] for first in range(0, len(pieces), size)]
    threads = [threading.Thread(target=read, args=(share,), daemon=True) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures and not reads:
        raise failures[0]
    return sorted(reads)


def _one_by_one(files: Sequence[Mapping[str, Any]], seconds: float) -> list[float]:
    """Returns the latencies, in ms, of single small reads at random offsets, including the open."""
    places = random.Random(2)
    times: list[float] = []
    until = time.perf_counter() + seconds
    with mmap.mmap(-1, _SMALL) as buffer:
        while time.perf_counter() < until and len(times) < _MOST_SMALL:
            file = places.choice(files)
            offset = places.randrange(max(file["bytes"] // _SMALL, 1)) * _SMALL
            begin = time.perf_counter()
            read_past_cache(file["path"], buffer, offset)
            times.append(1000 * (time.perf_counter() - begin))
    return times
