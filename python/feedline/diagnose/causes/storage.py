# SPDX-License-Identifier: Apache-2.0
"""Reading: what holds it up."""

from __future__ import annotations

from feedline.diagnose.causes import blocked
from feedline.diagnose.causes.case import NAMED, Case, gain_of_workers
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Host, Summary

_SMALL_FILE_BYTES = range(2 << 10, 128 << 10)
_OF_FILES = ("folder", "files")  # Feedline's formats with a file per sample
_FROM_DEVICE = 0.3
_FEWEST_BYTES, _MANY_BYTES = 1 << 10, 16 << 10  # of a sample
_NEAR_CEILING = 0.7
_LITTLE_COLDER = 0.9  # of the rate with files in the cache: then it is not the disk that is waited for
_UNMEASURED = 0.8


def storage(case: Case, evidence: list[str]) -> None:
    summary, host, waiting = case.summary, case.summary.host, case.stage_share("storage")
    from_device, part = _from_device(summary), blocked.in_files(summary)
    counted = part is None and from_device  # not seen where it waited: the kernel counted what was read
    share = waiting if counted else waiting * (part or 0.0)
    blocked.blocked(case, waiting - share, evidence)
    if share < NAMED:
        return
    cause, confidence, found, counter = _judged(host, from_device, _may_be_files(summary))
    confidence = min(confidence, blocked.limit_of(summary, part or 0.0))
    if counted:
        counter.append("where it waited was not seen: beside the reads that were counted it may have slept, too")
    found += blocked.sentences(summary.making.waited_for)
    gain = None
    best = prediction.advised_workers(summary, prediction.within_reach(summary))
    if cause == "storage_latency" and best is not None:
        gain, against = gain_of_workers(case.summary, best)
        counter = counter + against
    case.name(cause, share, confidence, [*evidence, *found], counter, gain, needs=("stages", "processes", "io"))


def _from_device(summary: Summary) -> bool:
    """Whether samples come from a local disk: most of their bytes, and enough to be no worker's start.

    Bytes come by read() or, more of them, by faults of mapped pages. Where no file was seen to be opened, native code
    may have opened them, or there are none: then only many bytes count.
    """
    host, batch = summary.host, summary.loader.get("batch_size")
    samples = summary.steps * (batch if isinstance(batch, int) else 1)
    faulted = (host.read_bytes_per_s or 0.0) * summary.loop_s / max(samples, 1)
    least = _MANY_BYTES if host.files_seen == 0 and not summary.native else _FEWEST_BYTES
    read = (host.read_bytes_per_sample or 0.0) >= least or (host.files_seen != 0 and faulted >= _MANY_BYTES)
    return (host.device_share or 0.0) > _FROM_DEVICE and read


def _may_be_files(summary: Summary) -> bool:
    """Whether a sample may be a file: Feedline says of its own loaders, elsewhere the sample's size has to."""
    form = (summary.loader.get("engine") or {}).get("format")
    return not form or form in _OF_FILES


def _judged(host: Host, from_device: bool, may_be_files: bool) -> tuple[str, float, list[str], list[str]]:
    """(cause, confidence, evidence, counter-evidence) of waiting that reading looks like."""
    if not from_device:
        return "storage_latency", 0.85, [], ["little came from local disks: what holds the files is elsewhere"]
    found, counter = _of_the_cache(host)
    full = _near_ceiling(host)
    if full:
        read, given = host.read_bytes_per_s or 0.0, host.disk_ceiling_bytes_per_s or 0.0
        found.append(f"{read / 1e6:.1f} MB/s were read, of {given / 1e6:.1f} MB/s that the disk gives to a probe")
    small = int(host.read_bytes_per_sample or 0) in _SMALL_FILE_BYTES
    if small and may_be_files and not (full and _bytes_are_scarce(host)):
        found.append(f"a sample reads {(host.read_bytes_per_sample or 0) / 1024:.0f} KiB, from the disk")
        return "small_files", _UNMEASURED if host.disk_ceiling_bytes_per_s is None else 0.9, found, counter
    if full:
        return "storage_bandwidth", 0.92, found, counter
    if host.disk_ceiling_bytes_per_s is None:
        counter.append("whether the disk was full is not known: experiments would have measured what it gives")
        return "storage_latency", _UNMEASURED, found, counter
    found.append(
        f"{(host.read_bytes_per_s or 0) / 1e6:.1f} MB/s were read, and the disk gives "
        f"{host.disk_ceiling_bytes_per_s / 1e6:.1f} MB/s: it is not full"
    )
    return "storage_latency", 0.9, found, counter


def _near_ceiling(host: Host) -> bool:
    rate, ceiling = host.read_bytes_per_s, host.disk_ceiling_bytes_per_s
    return rate is not None and bool(ceiling) and rate > _NEAR_CEILING * (ceiling or 0.0)


def _bytes_are_scarce(host: Host) -> bool:
    """Whether it is bytes that a full disk has no more of, and not requests.

    The probe's reads were large; or they were as small as the files, and smaller ones come back sooner in proportion.
    """
    if not host.disk_read_bytes or not host.disk_small_read_ms or host.disk_read_bytes >= _SMALL_FILE_BYTES.stop:
        return True
    large_per_s = (host.disk_ceiling_bytes_per_s or 0.0) / host.disk_read_bytes
    return large_per_s < _NEAR_CEILING * 1000 / host.disk_small_read_ms


def _of_the_cache(host: Host) -> tuple[list[str], list[str]]:
    found: list[str] = []
    counter: list[str] = []  # what contradicts it is in contradictions.py
    if host.cached_before is not None:
        found.append(f"{host.cached_before:.0%} of the data set's files, by a sample, were in the page cache before")
    if host.cold_share is not None:
        sentence = f"with its files out of the page cache the loader makes {host.cold_share:.0%} of the batches"
        (found if host.cold_share < _LITTLE_COLDER else counter).append(sentence + " that it makes with them in it")
    return found, counter
