# SPDX-License-Identifier: Apache-2.0
"""Number of worker processes to begin with, from a rank's share of cores and the class of storage."""

from __future__ import annotations

from typing import NamedTuple

_ON_DISK = 4  # readers beyond which a spinning disk mostly seeks
_WAITING = 2  # workers per thread if each of them waits for responses of object storage
# Share of the second hardware threads that get a worker: with both threads busy, a core decodes about a quarter more
# than with one, and the loop needs some of them.
_ON_FAST, _ON_UNKNOWN = 0.5, 0.25
_FAST = {
    "nvme": "an NVMe drive",
    "ssd": "an SSD",
    "memory": "memory",
    "virtual disk": "a virtual disk",
    "network": "a file server",
}

OBJECTS = "objects"  # object storage mounted as a file system; the other kinds are those of storage_facts()


class WorkerCount(NamedTuple):
    """Number of workers of one rank, and the reason in one sentence without a full stop."""

    workers: int
    why: str


def worker_count(threads: int, cores: int | None, ranks: int = 1, kind: str | None = None) -> WorkerCount:
    """Returns the number of workers for one rank; at least 1.

    Args:
        threads: hardware threads that all ranks together can use, limited by affinity, cpuset and quota.
        cores: physical cores with these threads; None if unknown, which counts each thread as a core.
        ranks: training processes that share these threads.
        kind: class of the dataset's storage, as in :func:`feedline.machine.storage.storage_facts`, or :data:`OBJECTS`;
            None if unknown.
    """
    share = max(threads // max(ranks, 1), 1)
    own_cores = max(min(cores if cores is not None else threads, threads) // max(ranks, 1), 1)
    siblings = share - own_cores
    words = _cpu_words(threads, cores, ranks)
    if share == 1:
        return WorkerCount(1, f"{words}, which the worker and the training loop must share")
    # with two threads per core, the loop runs on a second thread; without, it needs a core
    base = min(own_cores + int(siblings * (_ON_FAST if kind in _FAST else _ON_UNKNOWN)), share - 1)
    room = "one thread is left for the training loop"
    if kind == "disk" and base > _ON_DISK:
        return WorkerCount(_ON_DISK, f"{words}, but a spinning disk seeks more often with more readers")
    if kind in ("remote", OBJECTS):
        waiting = "two workers per other thread wait for object storage"
        return WorkerCount((share - 1) * _WAITING, f"{words}; {room}, and {waiting}")
    if kind == "network":
        return WorkerCount(base, f"{words}; {room}, and the file server, not the CPUs, may limit the rate")
    if siblings and base > own_cores:
        storage = _FAST.get(kind or "", "unknown storage")
        share_words = "half" if kind in _FAST else "a quarter"
        return WorkerCount(
            base,
            f"{words}; {room}, and workers use {share_words} of the cores' second threads, which is advised for "
            f"{storage}",
        )
    return WorkerCount(base, f"{words}; {room}")


def _cpu_words(threads: int, cores: int | None, ranks: int) -> str:
    words = f"{threads} usable CPU{'s' * (threads != 1)}"
    if cores is not None and cores < threads:
        words += f" on {cores} physical core{'s' * (cores != 1)}"
    return words + (f" for {ranks} ranks" if ranks > 1 else "")
