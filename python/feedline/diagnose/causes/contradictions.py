# SPDX-License-Identifier: Apache-2.0
"""What was measured and speaks against a cause: no verdict is certain against its own evidence.

Each rule holds a figure of the same run, most of all a rung of the experiments, beside what a cause says. Where they
cannot both be true the cause keeps its name, as its time was spent, but is not certain, promises nothing for sure, and
says what contradicts it. docs/diagnose.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from feedline.watching.summary.figures import Summary

MOST = 0.6  # the most that a contradicted cause can be
_OF_FILES = ("storage_latency", "storage_bandwidth", "small_files")
_SAME = 0.9  # of the rate with files in the cache: it does not matter where they are
_AS_MUCH = 1.25  # times the batches, at the high end of the interval: beyond, it is not measured well enough
# Reads of a loaded disk are late, and a sample may take some of them: not ten times and more.
_EXPLAINED = 0.1
_HELPS = 1.15  # times the batches, as too_few_workers asks for
_FEW_FAULTS = 20.0  # per second: a program that starts has as many
_MUCH_KERNEL = 0.3  # of the CPU
_UNSPENT = 0.5  # of a quota, by all of the run: no steady work meets it
_STRAGGLES = 2.0  # times the mean sample at least
_HANDED = 0.1  # of the waiting: what handing over the same batch took by itself
_SLOWER = 0.9  # of the loop's pace: a loader that is so slow by itself cannot leave the loop to its own work
_NO_SHORTER = 0.95  # of a start


class Rule(NamedTuple):
    causes: tuple[str, ...]
    speaks: Callable[[Summary, str, float], str | None]  # of the cause and its share: why not, in words


def against(summary: Summary, cause: str, share: float) -> list[str]:
    """All that contradicts this cause."""
    told = (rule.speaks(summary, cause, share) for rule in RULES.values() if cause in rule.causes)
    return [reason for reason in told if reason is not None]


def _page_cache(summary: Summary, _cause: str, _share: float) -> str | None:
    cold = summary.host.cold_share
    _, _, high = summary.tried.get("files in the page cache", (0.0, 0.0, 1.0))
    if cold is None or cold < _SAME or high > _AS_MUCH:
        return None
    return f"measured: with its files in the page cache the loader makes {1 / cold:.2f} times the batches, no more"


def _small_reads(summary: Summary, _cause: str, _share: float) -> str | None:
    """Its samples wait longer than the disk takes for all that they read."""
    host, batch = summary.host, summary.loader.get("batch_size")
    if summary.native or not host.disk_small_read_ms or not isinstance(batch, int) or summary.making.stages is None:
        return None
    waits = summary.making.wall_ms * summary.making.stages.get("storage", 0.0) / max(batch, 1)
    rate = host.disk_ceiling_bytes_per_s or 0.0
    moved = 1000 * (host.read_bytes_per_sample or 0.0) / rate if rate else 0.0
    if host.disk_small_read_ms + moved >= _EXPLAINED * waits:
        return None
    return (
        f"measured: a small read of the disk takes {host.disk_small_read_ms:.2f} ms, and a sample waits {waits:.1f} ms"
    )


def _full_disk(summary: Summary, _cause: str, _share: float) -> str | None:
    gain = gain_of_more(summary)
    if gain is None or gain[1] < _HELPS or gain[2] <= 1:
        return None
    return f"measured: {summary.counted(gain[0])} get {gain[1]:.2f} times the batches, so the disk has more to give"


def _quota_has_room(summary: Summary, _cause: str, _share: float) -> str | None:
    host, gain = summary.host, gain_of_more(summary)
    if gain is not None and gain[1] >= _HELPS and gain[2] > 1:
        return f"measured: {summary.counted(gain[0])} make {gain[1]:.2f} times the batches within the same quota"
    if host.quota_cpus and host.used_cpus is not None and host.used_cpus < _UNSPENT * host.quota_cpus:
        return f"the run used {host.used_cpus:.2f} of the quota's {host.quota_cpus:.2g} CPUs"
    return None


def _no_paging(summary: Summary, _cause: str, _share: float) -> str | None:
    host = summary.host
    if host.major_faults_per_s is None or host.major_faults_per_s >= _FEW_FAULTS:
        return None
    if host.in_kernel is None or host.in_kernel > _MUCH_KERNEL:
        return None
    return f"only {host.major_faults_per_s:.0f} pages per second had to be read again"


def _workers_gain_nothing(summary: Summary, cause: str, _share: float) -> str | None:
    gain = None if cause == "python_main_process" and summary.workers else gain_of_more(summary)
    if gain is None or gain[1] > 1 / _NO_SHORTER or gain[3] >= _HELPS:
        return None
    return f"measured, the loader alone: {summary.counted(gain[0])}: {gain[1]:.2f} times the batches"


def _fewer_are_slower(summary: Summary, _cause: str, _share: float) -> str | None:
    present = summary.rungs.get(summary.workers)
    fewer = {workers: rate for workers, rate in summary.rungs.items() if 1 <= workers < summary.workers}
    if not present or not fewer or max(fewer.values()) > _SAME * present:
        return None
    best = max(fewer, key=lambda workers: fewer[workers])
    return f"measured, the loader alone: {summary.counted(best)}: {fewer[best] / present:.2f} times the batches"


def _start_is_light(summary: Summary, _cause: str, _share: float) -> str | None:
    tried = summary.tried.get("persistent_workers=True")
    if tried is None or tried[0] < _NO_SHORTER or tried[1] < _SAME:
        return None
    return f"measured: an epoch's first batch of workers that stayed comes after {tried[0]:.2f} times as long"


def _handing_is_cheap(summary: Summary, _cause: str, share: float) -> str | None:
    making = summary.making
    if making.sent_ms is None or making.received_ms is None:
        return None
    waited = share * 1000 * summary.loop_s / max(summary.steps, 1)
    took = making.sent_ms + making.received_ms + (making.exchange_ms or 0.0)
    if took >= _HANDED * waited:
        return None
    return f"measured: handing over a batch by itself takes {took:.2f} ms, and the loop waits {waited:.2f} ms for it"


def _loader_is_slower(summary: Summary, _cause: str, _share: float) -> str | None:
    measured = summary.rung_intervals.get(summary.workers)
    if measured is None or summary.workers == 0 or not summary.loop_s:
        return None
    pace = summary.steps / summary.loop_s
    if measured[1] >= _SLOWER * pace:
        return None
    return f"measured: the loader alone gives {measured[1]:.1f} batches/s at most, and the loop took {pace:.1f}"


def _no_slow_sample(summary: Summary, _cause: str, _share: float) -> str | None:
    making = summary.making
    if making.slowest_sample_ms is None or not making.sample_ms:
        return None
    if making.slowest_sample_ms >= _STRAGGLES * making.sample_ms:
        return None
    return f"the slowest sample seen took {making.slowest_sample_ms:.1f} ms, the mean is {making.sample_ms:.1f} ms"


def _decoding_is_no_part(summary: Summary, _cause: str, _share: float) -> str | None:
    """CPU that the run did not use: a cause that uses CPUs up leaves its mark on them."""
    host, making = summary.host, summary.making
    if host.used_cpus is None or summary.native or not making.wall_ms or not summary.loop_s:
        return None
    needed = making.cpu_ms * making.batches / 1000 / summary.loop_s
    if host.used_cpus >= needed * _UNSPENT:
        return None
    return f"the run used {host.used_cpus:.2f} CPUs, and its batches would take {needed:.2f}"


def gain_of_more(summary: Summary) -> tuple[int, float, float, float] | None:
    """(workers, ratio, low, high) of the best rung with more workers; None: none was measured beside the present."""
    present = summary.rungs.get(summary.workers)
    more = {workers: rate for workers, rate in summary.rungs.items() if workers > summary.workers}
    if not present or not more:
        return None
    best = max(more, key=lambda workers: more[workers])
    low, high = summary.rung_intervals.get(best, (more[best], more[best]))
    own_low, own_high = summary.rung_intervals.get(summary.workers, (present, present))
    return best, more[best] / present, low / max(own_high, 1e-9), high / max(own_low, 1e-9)


RULES = {
    "its files' place does not matter": Rule(_OF_FILES, _page_cache),
    "reads are quick": Rule(("storage_latency", "small_files"), _small_reads),
    "the disk gives more": Rule(("storage_bandwidth",), _full_disk),
    "the quota has room": Rule(("cpu_quota",), _quota_has_room),
    "nothing is paged": Rule(("memory_pressure",), _no_paging),
    "more workers gain nothing": Rule(("too_few_workers", "python_main_process"), _workers_gain_nothing),
    "fewer workers are slower": Rule(("oversubscribed",), _fewer_are_slower),
    "workers start quickly": Rule(("worker_startup",), _start_is_light),
    "handing over is quick": Rule(("worker_handover",), _handing_is_cheap),
    "the loader alone is slower": Rule(("compute_bound",), _loader_is_slower),
    "no sample is slow": Rule(("straggling_sample",), _no_slow_sample),
    "the CPUs were idle": Rule(("cpu_decode", "cpu_transform", "collate"), _decoding_is_no_part),
}
