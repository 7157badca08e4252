# SPDX-License-Identifier: Apache-2.0
"""Initial worker count and prefetch depth for this machine, from rules with their reasons."""

from __future__ import annotations

from dataclasses import dataclass

from ..findings import Threshold
from ..machine.planned_load import PlannedLoad
from ..machine.preflight_facts import PreflightFacts
from .source import Source

TINY = Threshold(100e3, "bytes per sample: records, tokens, thumbnails")
LARGE = Threshold(20e6, "bytes per sample: video, volumes, satellite images")
_OF_DISK = 4  # readers beyond which a spinning disk mostly seeks
_WAITING = 2  # workers per CPU if each of them waits for network responses
_MEMORY_SHARE = 4  # of the memory left: the share for queued batches


@dataclass(frozen=True)
class Advice:
    workers: int
    prefetch: int
    why: tuple[str, ...]


def enough_ahead(sample_bytes: int | None) -> int:
    """Returns the batches per worker that smooth out jitter, by sample size."""
    if sample_bytes is None:
        return 2
    return 4 if sample_bytes <= TINY else 1 if sample_bytes >= LARGE else 2


def advise(machine: PreflightFacts, load: PlannedLoad | None, source: Source | None) -> Advice:
    """Returns the advice for one rank."""
    ranks = load.ranks if load is not None else machine.ranks
    share = max(machine.cpus.threads // max(ranks, 1), 1)
    workers = max(share - 1, 1)
    why = [f"{machine.cpus.threads} usable CPUs" + (f" for {ranks} ranks" if ranks > 1 else "")]
    why.append("one CPU is reserved for the training loop" if share > 1 else "only one CPU is usable")
    if source is not None and source.kind == "disk" and workers > _OF_DISK:
        workers = _OF_DISK
        why.append("a spinning disk seeks with more readers")
    elif source is not None and (source.kind == "remote" or _is_objects(source)):
        workers *= _WAITING
        why.append("workers wait for object storage")
    elif source is not None and source.kind == "network":
        why.append("the server sets the rate, so more workers would not help")
    prefetch = enough_ahead(load.sample_bytes if load is not None else None)
    if load is not None and load.batch_bytes and machine.memory.told:
        room = machine.memory.left // _MEMORY_SHARE // max(ranks, 1)
        while prefetch > 1 and workers * prefetch * load.batch_bytes > room:
            prefetch -= 1
        while workers > 1 and workers * prefetch * load.batch_bytes > room:
            workers -= 1
        if workers * prefetch * load.batch_bytes * 2 > room:
            why.append("queued batches stay within a quarter of the memory left")
    return Advice(workers, prefetch, tuple(why))


def _is_objects(source: Source) -> bool:
    return source.mount is not None and source.mount.family == "objects"
