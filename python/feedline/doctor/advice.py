# SPDX-License-Identifier: Apache-2.0
"""Initial worker count and prefetch depth for this machine, from rules with their reasons."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..findings import Threshold
from ..machine.planned_load import PlannedLoad
from ..machine.preflight_facts import PreflightFacts
from ..machine.worker_count import OBJECTS, worker_count
from .source import Source

TINY = Threshold(100e3, "size of a sample in bytes; records, tokens and thumbnails are smaller")
LARGE = Threshold(20e6, "size of a sample in bytes; videos, volumes and satellite images are larger")
# Names of GPUs that share the CPU's memory (Jetson, DGX Spark), and of those linked to a CPU by NVLink-C2C.
_UNIFIED = re.compile(r"\b(Tegra|Xavier|Orin|Thor|GB10)\b")
_COHERENT = re.compile(r"\b(GH200|GB200|GB300)\b")
_MEMORY_SHARE = 4  # of the memory left: the share for queued batches


@dataclass(frozen=True)
class Advice:
    workers: int
    prefetch: int
    why: tuple[str, ...]
    pin: bool | None = None  # whether to page-lock batches; None without a GPU
    link: str = ""  # how batches reach the GPUs, and the consequence; "" without a GPU


def enough_ahead(sample_bytes: int | None) -> int:
    """Returns the number of prefetched batches per worker that absorbs jitter, for a given sample size."""
    if sample_bytes is None:
        return 2
    return 4 if sample_bytes <= TINY else 1 if sample_bytes >= LARGE else 2


def advise(machine: PreflightFacts, load: PlannedLoad | None, source: Source | None) -> Advice:
    """Returns the advice for one rank."""
    ranks = load.ranks if load is not None else machine.ranks
    kind = None if source is None else OBJECTS if _is_objects(source) else source.kind
    workers, reason = worker_count(machine.cpus.threads, machine.cpus.cores, ranks, kind)
    why = [reason]
    prefetch = enough_ahead(load.sample_bytes if load is not None else None)
    if load is not None and load.batch_bytes and machine.memory.is_known:
        room = machine.memory.left // _MEMORY_SHARE // max(ranks, 1)
        while prefetch > 1 and workers * prefetch * load.batch_bytes > room:
            prefetch -= 1
        while workers > 1 and workers * prefetch * load.batch_bytes > room:
            workers -= 1
        if workers * prefetch * load.batch_bytes * 2 > room:
            why.append("queued batches are limited to a quarter of the available memory")
    return Advice(workers, prefetch, tuple(why), *_of_links(machine))


def _of_links(machine: PreflightFacts) -> tuple[bool | None, str]:
    """Returns whether to page-lock batches, and a sentence on how batches reach the GPUs."""
    names = [gpu.name for gpu in machine.gpus]
    if not names:
        return None, ""
    if any(_UNIFIED.search(name) for name in names):
        return False, (
            f"{names[0]} shares the CPU's memory, so batches are not copied over a bus: page-locking does not speed up "
            "transfers, and the model and the prefetched batches must fit in the same memory"
        )
    if any(_COHERENT.search(name) for name in names):
        return True, (
            f"{names[0]} reads the CPU's memory over NVLink-C2C, several times as fast as PCIe: copies are rarely the "
            "limit, so add workers before you tune pinning"
        )
    if len(names) > 1:
        return True, (
            "batches reach the GPUs over PCIe; NVLink connects only the GPUs with each other, so it does not change "
            "the number of workers or pinning"
        )
    return True, "batches reach the GPU over PCIe, which is faster from page-locked memory"


def _is_objects(source: Source) -> bool:
    return source.mount is not None and source.mount.family == "objects"
