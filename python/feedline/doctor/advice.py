# SPDX-License-Identifier: Apache-2.0
"""How many workers and how many batches ahead to begin with on this machine, by rules with their reasons."""

from __future__ import annotations

from dataclasses import dataclass

from ..findings import Threshold
from ..machine.planned_load import PlannedLoad
from ..machine.surroundings import Surroundings
from .source import Source

TINY = Threshold(100e3, "bytes of a sample: records, tokens, thumbnails")
LARGE = Threshold(20e6, "bytes of a sample: video, volumes, satellite images")
_OF_DISK = 4  # readers that a spinning disk serves before it only seeks
_WAITING = 2  # workers per CPU where each of them waits for answers over a network
_MEMORY_SHARE = 4  # of what is left: one part for batches that wait


@dataclass(frozen=True)
class Advice:
    workers: int
    prefetch: int
    why: tuple[str, ...]


def enough_ahead(sample_bytes: int | None) -> int:
    """Batches ahead of each worker that smooth out jitter, by the size of a sample."""
    if sample_bytes is None:
        return 2
    return 4 if sample_bytes <= TINY else 1 if sample_bytes >= LARGE else 2


def advise(machine: Surroundings, load: PlannedLoad | None, source: Source | None) -> Advice:
    """For one rank."""
    ranks = load.ranks if load is not None else machine.ranks
    share = max(machine.cpus.threads // max(ranks, 1), 1)
    workers = max(share - 1, 1)
    why = [f"{machine.cpus.threads} usable CPUs" + (f" for {ranks} ranks" if ranks > 1 else "")]
    why.append("one is the training loop's" if share > 1 else "there is one CPU")
    if source is not None and source.kind == "disk" and workers > _OF_DISK:
        workers = _OF_DISK
        why.append("a spinning disk seeks between more readers")
    elif source is not None and (source.kind == "remote" or _is_objects(source)):
        workers *= _WAITING
        why.append("each waits for answers of object storage")
    elif source is not None and source.kind == "network":
        why.append("the server sets the rate: more workers do not help there")
    prefetch = enough_ahead(load.sample_bytes if load is not None else None)
    if load is not None and load.batch_bytes and machine.memory.told:
        room = machine.memory.left // _MEMORY_SHARE // max(ranks, 1)
        while prefetch > 1 and workers * prefetch * load.batch_bytes > room:
            prefetch -= 1
        while workers > 1 and workers * prefetch * load.batch_bytes > room:
            workers -= 1
        if workers * prefetch * load.batch_bytes * 2 > room:
            why.append("batches that wait stay within a quarter of the memory that is left")
    return Advice(workers, prefetch, tuple(why))


def _is_objects(source: Source) -> bool:
    return source.mount is not None and source.mount.family == "objects"
