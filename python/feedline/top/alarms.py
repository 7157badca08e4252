# SPDX-License-Identifier: Apache-2.0
"""What deserves a look at once, and the first thing to do about it. Causes are for ``feedline diagnose`` to prove."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..machine.gpu import Reading
from ..machine.host import Figures
from .published import Loader
from .rates import LoaderRates

LOOKS = 10  # one slow batch or one busy second is no alarm
_WAIT_ALARM, _WAIT_NOTE = 0.20, 0.10  # the shares at which feedline diagnose and trace say critical and warning
_DISK_BUSY = 0.95
_IO_PRESSURE = 0.10
_MEMORY_LEFT = 0.10
_GPU_MEMORY_LEFT = 0.05
_GPU_IDLE = 0.30  # utilisation under which a GPU with memory to spare is not being fed
_GPU_AMPLE = 0.30  # share of its memory that is free, then
_SAW_LOW, _SAW_HIGH, _SAW_TURNS = 0.20, 0.70, 4
_THROTTLED = 0.10
_DELAYED = 0.50  # ready without a CPU as long as with one
_STALL_S = 30.0


@dataclass(frozen=True)
class Alarm:
    name: str  # stable
    severity: str  # "alarm", or "note"
    text: str


@dataclass(frozen=True)
class Moment:
    """What one look found. `idle_s`: per loader, since its last batch."""

    loaders: tuple[tuple[str, Loader, LoaderRates | None, float], ...]  # name, totals, rates, idle_s
    host: Figures
    gpus: tuple[Reading, ...]


class Alarms:
    """Judges looks one after the other. What lasts is told when it held for `looks` of them."""

    def __init__(self, looks: int = LOOKS) -> None:
        self._looks = looks
        self._recent: list[Moment] = []

    def judge(self, moment: Moment) -> tuple[Alarm, ...]:
        """What is the matter now, alarms before notes."""
        self._recent = [*self._recent, moment][-self._looks :]
        found = [*self._loaders(moment), *self._memory(moment.host), *self._host(moment.host), *self._gpus(moment)]
        return tuple(sorted(found, key=lambda alarm: alarm.severity != "alarm"))

    def _held(self, values: Iterable[float | None]) -> float | None:
        """The mean over the last looks; None unless all of them are there."""
        known = [value for value in values if value is not None]
        return sum(known) / self._looks if len(known) == self._looks else None

    def _loaders(self, moment: Moment) -> Iterator[Alarm]:
        for name, loader, rates, idle_s in moment.loaders:
            waits = [r.wait_share for m in self._recent for n, _, r, _ in m.loaders if n == name and r is not None]
            wait = self._held(waits)
            if wait is not None and wait >= _WAIT_NOTE:
                severity = "alarm" if wait >= _WAIT_ALARM else "note"
                yield Alarm(
                    "loop_waits", severity, f"the loop waits {wait:.0%} of its time for {name}; run `feedline diagnose`"
                )
            if rates is not None and idle_s > _STALL_S and loader.ready_batches == 0:
                yield Alarm("no_batch", "alarm", f"{name}: no batch for {idle_s:.0f} s, and none is ready")
            if loader.bad_samples:
                yield Alarm("bad_samples", "note", f"{name}: {loader.bad_samples:,.0f} bad samples; see loader.errors")

    def _memory(self, host: Figures) -> Iterator[Alarm]:
        swapping = [m.host.swapped_pages_per_s for m in self._recent[-2:]]  # one page now and then is nothing
        if host.memory.swapped_bytes:
            yield Alarm(
                "swap", "alarm", f"{_gb(host.memory.swapped_bytes)} of this run are swapped out: {_LESS_MEMORY}"
            )
        elif len(swapping) == min(2, self._looks) and all(swapping):
            yield Alarm("swap", "alarm", f"the machine swaps {host.swapped_pages_per_s:,.0f} pages/s: {_LESS_MEMORY}")
        limit, used = host.memory.limit_bytes, host.memory.used_bytes
        if limit and used is not None and used > (1 - _MEMORY_LEFT) * limit:
            yield Alarm("memory_limit", "alarm", f"{_gb(used)} of the limit of {_gb(limit)} are used: {_LESS_MEMORY}")
        if host.limit_hits_per_s:
            yield Alarm("memory_limit", "alarm", f"the memory limit was hit: {_LESS_MEMORY}")
        shared, shared_limit = host.memory.shared_bytes, host.memory.shared_limit_bytes
        if shared_limit and shared is not None and shared > (1 - _MEMORY_LEFT) * shared_limit:
            yield Alarm(
                "shared_memory",
                "alarm",
                f"/dev/shm holds {_gb(shared)} of {_gb(shared_limit)}: remove leftovers, or docker run --shm-size",
            )

    def _host(self, host: Figures) -> Iterator[Alarm]:
        throttled = self._held(m.host.throttled_share for m in self._recent)
        if throttled is not None and throttled >= _THROTTLED:
            yield Alarm("cpu_quota", "alarm", f"stopped {throttled:.0%} of the time by the CPU quota: fewer workers")
        delay = self._held(m.host.delay_share for m in self._recent)
        if delay is not None and delay >= _DELAYED and host.cpus_used is not None and host.cpus_busy is not None:
            others = host.cpus_used < host.cpus_busy / 2
            why = "other programs use the CPUs" if others else "it has more busy threads than CPUs"
            yield Alarm("cpu_contention", "note", f"this run had no CPU {delay:.0%} of the time it wanted one: {why}")
        yield from self._disk(host)

    def _disk(self, host: Figures) -> Iterator[Alarm]:
        if not host.disks:
            return
        disk = host.disks[0]
        busy = self._held(d.busy_share for m in self._recent for d in m.host.disks if d.name == disk.name)
        pressure = self._held(m.host.io_pressure for m in self._recent)
        if busy is None or busy < _DISK_BUSY:
            return
        if pressure is None or pressure < _IO_PRESSURE:
            yield Alarm("disk_busy", "note", f"{disk.name} is always busy, and nobody waits: it takes many at once")
        else:
            yield Alarm(
                "disk_busy",
                "alarm",
                f"{disk.name} is always busy, and work waits for it {pressure:.0%} of the time: cache or pack the data",
            )

    def _gpus(self, moment: Moment) -> Iterator[Alarm]:
        for gpu in moment.gpus:
            if gpu.pids and not set(gpu.pids) & set(moment.host.pids):
                continue  # another run's
            history = [g.utilisation for m in self._recent for g in m.gpus if g.index == gpu.index]
            busy = self._held(history)
            free = None
            if gpu.memory_bytes and gpu.memory_used_bytes is not None:
                free = 1 - gpu.memory_used_bytes / gpu.memory_bytes
            if free is not None and free < _GPU_MEMORY_LEFT:
                yield Alarm(
                    "gpu_memory", "alarm", f"GPU {gpu.index} has {free:.0%} of its memory left: smaller batches"
                )
            if gpu.slowed:
                yield Alarm("gpu_slowed", "note", f"GPU {gpu.index} is held below its clock by power or heat")
            if busy is None:
                continue
            if turns(history) >= _SAW_TURNS:
                yield Alarm("gpu_sawtooth", "alarm", f"GPU {gpu.index} goes from busy to idle and back: data supply?")
            elif busy < _GPU_IDLE and free is not None and free > _GPU_AMPLE and self._supply_is_short(moment):
                yield Alarm(
                    "gpu_idle",
                    "alarm",
                    f"GPU {gpu.index} is used {busy:.0%}, has memory to spare, and waits for data: "
                    "run `feedline diagnose`",
                )

    def _supply_is_short(self, moment: Moment) -> bool:
        waits = [rates.wait_share or 0.0 for _, _, rates, _ in moment.loaders if rates is not None]
        used, usable = moment.host.cpus_used, moment.host.cpus_usable
        return max(waits, default=0.0) >= _WAIT_NOTE or (used is not None and used >= 0.9 * usable)


def turns(utilisation: Iterable[float | None]) -> int:
    """How often it went from high to low or back."""
    high: bool | None = None
    count = 0
    for value in utilisation:
        if value is None or _SAW_LOW < value < _SAW_HIGH:
            continue
        count += high is not None and high != (value >= _SAW_HIGH)
        high = value >= _SAW_HIGH
    return count


_LESS_MEMORY = "less prefetching, fewer workers, smaller batches"  # in the order in which they cost least


def _gb(count: float) -> str:
    return f"{count / 1e9:.1f} GB"
