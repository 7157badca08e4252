# SPDX-License-Identifier: Apache-2.0
"""Runs all machine measurements in alternating rounds, so that temporary disturbances affect all of them."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...errors import ConfigError
from ...machine import limits
from ...machine.storage import local_path
from ...record import series
from ...record.figures import figure
from . import work
from .disk import Disk, NotMeasured

SECONDS = 2.0  # for the rounds; preparation comes before
_FEWEST, _MOST = 8, 100  # rounds
_REACHED = 0.9  # of the rounds, sorted by rate
_SMALL_READS = 4  # in a round
_COPIED = (64 << 20,)  # bytes, to a GPU

_LABELS = {
    "decode_per_s": ("images decoded by one thread", "1/s", "higher"),
    "python_per_s": ("iterations of a Python loop", "1/s", "higher"),
    "memory_bytes_per_s": ("memory copied by one thread", "B/s", "higher"),
    "memory_all_bytes_per_s": ("memory copied by all threads", "B/s", "higher"),
    "disk_bytes_per_s": ("large disk reads", "B/s", "higher"),
    "disk_small_ms": ("small disk read", "ms", "lower"),
    "matrix_products_per_s": ("products of 512 x 512 matrices with torch, one thread", "1/s", "higher"),
    "convolutions_per_s": ("convolutions of 64 x 56 x 56 images with torch, one thread", "1/s", "higher"),
    "copy_bytes_per_s": ("copies to the GPU", "B/s", "higher"),
}


@dataclass
class Probes:
    """Measurements as rows of a record's ``probes``, and the reason for each missing measurement by name."""

    figures: list[dict[str, Any]]
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        return [f"{name}: not measured, because {why}" for name, why in self.missing.items()]


def measure(
    source: str | None,
    seconds: float = SECONDS,
    clock: Callable[[], float] | None = None,
    known: Mapping[str, float] = MappingProxyType({}),
) -> Probes:
    """Measures this machine for slightly longer than `seconds` seconds.

    Args:
        source: dataset whose disk is measured; None omits the disk.
        clock: returns seconds; replaced in tests. Defaults to the thread's CPU time for single-threaded work, so that a
            busy machine does not look slow.
        known: existing metrics by name; disk metrics in ``known`` are not measured again.
    """
    missing: dict[str, str] = {}
    rounds = _pieces(clock)
    rounds |= {} if known else _of_disk(source, missing)
    values: dict[str, list[float]] = {name: [] for name in rounds}
    for once in rounds.values():
        once()  # code, memory and clocks warm up
    until, count = time.monotonic() + seconds, 0
    while count < _FEWEST or (time.monotonic() < until and count < _MOST):
        for name, once in rounds.items():
            values[name].append(once())
        count += 1
    values |= _of_torch(missing, clock or time.thread_time)
    values |= _of_gpu(missing)
    values |= {name: [value] for name, value in known.items()}
    return Probes([_figure(name, taken) for name, taken in values.items()], missing)


def of_host(host: Mapping[str, Any]) -> dict[str, float]:
    """Returns the disk metrics that ``feedline diagnose`` has measured, from its host summary."""
    names = {"disk_bytes_per_s": "disk_ceiling_bytes_per_s", "disk_small_ms": "disk_small_read_ms"}
    return {name: float(host[own]) for name, own in names.items() if host.get(own)}


def _pieces(clock: Callable[[], float] | None) -> dict[str, Callable[[], float]]:
    threads = limits.share_of_cpus()
    alone, together = clock or time.thread_time, clock or time.perf_counter
    made = {
        "decode_per_s": _timed(work.decoding(), alone),
        "python_per_s": _timed(work.interpreting(), alone),
        "memory_bytes_per_s": _timed(work.copying(1, limits.memory_left()), alone),
    }
    if threads > 1:
        made["memory_all_bytes_per_s"] = _timed(work.copying(threads, limits.memory_left()), together)
    return made


def _timed(piece: work.Piece, clock: Callable[[], float]) -> Callable[[], float]:
    def once() -> float:
        begin = clock()
        piece[0]()
        return piece[1] / max(clock() - begin, 1e-9)

    return once


def _of_disk(source: str | None, missing: dict[str, str]) -> dict[str, Callable[[], float]]:
    if source is None:
        missing["the disk"] = "needs a SOURCE"
        return {}
    path = local_path(source)
    if not Path(path).exists():
        missing["the disk"] = f"{source} is not a local file or folder"
        return {}
    try:
        disk = Disk(path)
    except NotMeasured as error:
        missing["the disk"] = str(error)
        return {}
    return {
        "disk_bytes_per_s": disk.large,
        "disk_small_ms": lambda: sum(disk.small() for _ in range(_SMALL_READS)) / _SMALL_READS,
    }


def _of_torch(missing: dict[str, str], clock: Callable[[], float]) -> dict[str, list[float]]:
    """Measures torch's build on one CPU; importing torch takes seconds."""
    try:
        import torch
    except Exception as error:  # a broken installation raises other errors, too
        missing["torch's build"] = f"torch cannot be imported: {error}"
        return {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        pieces = {
            "matrix_products_per_s": _timed(work.multiplying(torch), clock),
            "convolutions_per_s": _timed(work.convolving(torch), clock),
        }
        for once in pieces.values():
            once()
        rounds = [{name: once() for name, once in pieces.items()} for _ in range(_FEWEST)]
    finally:
        torch.set_num_threads(threads)
    return {name: [one[name] for one in rounds] for name in pieces}


def _of_gpu(missing: dict[str, str]) -> dict[str, list[float]]:
    """Measures large page-locked copies if torch and a GPU are available; importing torch takes seconds."""
    if not Path("/dev/nvidia0").exists():
        missing["copies to a GPU"] = "there is no GPU"
        return {}
    if importlib.util.find_spec("torch") is None:
        missing["copies to a GPU"] = "torch, which is needed to measure copies, is not installed"
        return {}
    from ..device.torch_link import TorchLink, find_device

    try:
        torch, device = find_device("cuda")
    except ConfigError as error:
        missing["copies to a GPU"] = str(error)
        return {}
    link = TorchLink(torch, device, 1, 8)
    for size in _COPIED:
        link.copy_s(size, True)
    return {"copy_bytes_per_s": [size / link.copy_s(size, True) for size in _COPIED for _ in range(_FEWEST)]}


def _figure(name: str, values: list[float]) -> dict[str, Any]:
    """Returns the rate reached by the fastest tenth of the rounds, since other programs can only reduce it.

    The interval includes both this rate and the interval of the mean, so it is wide on a busy machine.
    """
    label, unit, better = _LABELS[name]
    low, high = series.rate_interval(values, [1.0] * len(values))
    fraction = _REACHED if better == "higher" else 1 - _REACHED
    reached = sorted(values)[round(fraction * (len(values) - 1))]
    if low is not None and high is not None and math.isfinite(low):
        low, high = min(max(low, 0.0), reached), max(high, reached)
    return figure(name, label, unit, reached, low, high, better=better)


def joined(record: Mapping[str, Any], probes: Probes) -> dict[str, Any]:
    """Adds the machine measurements to `record`."""
    return {**record, "probes": probes.figures, "notes": [*record["notes"], *probes.notes]}
