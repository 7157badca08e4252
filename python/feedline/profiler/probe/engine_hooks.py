# SPDX-License-Identifier: Apache-2.0
"""Polls the engine's counters while a loop uses a Feedline loader, to record the work of its native threads.

A poll reads the counters of all stages and the CPU time of the engine's threads, and adds the changes since the
previous poll to the loop's totals. The totals are stored next to the loader's settings. Work between two epochs counts
for the second epoch.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import Any, ClassVar

from feedline.profiler.probe import events
from feedline.profiler.probe.recorder import Recorder, clock, cpu_clock

_FIRST_LOOK_NS, _MOST_NS = 50_000_000, 1_000_000_000  # short loops are polled early, long ones once a second
_COST_SHARE, _FREE_NS = 1000, 400_000  # polls may cost 1/1000 of the time, except the first one or two
_OF_DATASET = ("blocks_bytes", "blocks_delivered_bytes")  # counted over all loaders of a dataset
_COUNTED = ("items", "bytes", "busy_s", "blocked_s", "starved_s")
_READS_AHEAD = " at once by "  # appears in the engine's plan for slow storage
_FORMAT = re.compile(r"^format +(\w+)", re.MULTILINE)  # appears there too
_LOOKS_AT_OTHERS = 2  # new threads have no name yet; after this many polls, a thread is not the engine's
_THREADS = b"feedline-"  # prefixes of the engine's thread names, followed by a number; torch's and the script's differ


class Tally:
    """Totals of all loops in one process over loaders with the same settings."""

    def __init__(self, recorder: Recorder, number: int, facts: dict[str, Any]) -> None:
        self._recorder, self._number, self._facts = recorder, number, facts
        self._before: dict[str, float] = {}
        self._engine: Any = None
        self._due = self._spent_ns = 0
        self._first_ns = clock()
        self._period = _FIRST_LOOK_NS
        self._totals: dict[str, float] = {}
        self._times = ThreadTimes()
        self._threads = 0
        self._reads_ahead = False
        self._format = ""
        self._asked = _hosts()  # requests of the process before
        self._hosts: list[dict[str, Any]] = []

    def begin(self, engine: Any) -> None:
        """Called when a loop begins, after its threads have started. This method and the following ones never raise."""
        with contextlib.suppress(Exception):
            if engine is not self._engine:
                self._engine, self._times = engine, ThreadTimes()
                before = self._counters(engine)
                # a new engine has no earlier work, except that of its dataset
                is_new = not before["batches"]
                self._before = {n: v for n, v in before.items() if not is_new or n in _OF_DATASET}
            self._due = clock() + self._period

    def look_if_due(self, engine: Any) -> bool:
        """Polls the counters if a poll is due. Returns whether the counters were polled."""
        due = clock() >= self._due
        if due:
            self.look(engine)
        return due

    def look_at_end(self, engine: Any) -> None:
        """Polls the counters at the end of a loop. If loops are too short, a later poll includes this loop."""
        if self._spent_ns <= _FREE_NS + (clock() - self._first_ns) / _COST_SHARE:
            self.look(engine)

    def look(self, engine: Any) -> None:
        begin, cpu = clock(), cpu_clock()
        with contextlib.suppress(Exception):
            if engine is not self._engine:  # the loader has created another engine: earlier work is unknown
                self.begin(engine)
                return
            now = self._counters(engine)
            for name, value in now.items():
                self._totals[name] = self._totals.get(name, 0.0) + max(value - self._before.get(name, 0.0), 0.0)
            self._before = now
            self._hosts = _since(self._asked, _hosts())
            self._write()
        cost = cpu_clock() - cpu
        self._spent_ns += cost
        self._period = max(min(2 * self._period, _MOST_NS), cost * _COST_SHARE)
        self._due = clock() + self._period
        self._recorder.record(events.LOOK, begin, cost)

    def _counters(self, engine: Any) -> dict[str, float]:
        raw = engine.stats()
        self._threads = int(raw["threads"])
        plan = engine.explain()
        self._reads_ahead = self._reads_ahead or _READS_AHEAD in plan
        self._format = next((m[1] for m in [_FORMAT.search(plan)] if m), "")
        counters = {"batches": float(raw["batches"]), "samples": float(raw["samples"])}
        if raw["blocks"]:
            counters |= {f"blocks_{name}": float(raw["blocks"][name]) for name in ("bytes", "delivered_bytes")}
        for name, stage in raw["stages"].items():
            counters |= {f"{name}/{counted}": float(stage[counted]) for counted in _COUNTED}
        times = self._times.total()
        if times is not None:
            counters["running_s"], counters["delayed_s"] = times
        return counters

    def _write(self) -> None:
        stages: dict[str, dict[str, float]] = {}
        for name, value in self._totals.items():
            stage, _, counted = name.partition("/")
            if counted:
                stages.setdefault(stage, {})[counted] = value
        engine = {name: value for name, value in self._totals.items() if "/" not in name}
        known = {
            "threads": self._threads,
            "reads_ahead": self._reads_ahead,
            "format": self._format,
            "hosts": self._hosts,
        }
        found = {**known, **engine, "stages": stages}
        self._recorder.rewrite_loader(self._number, {**self._facts, "engine": found})


def _hosts() -> dict[str, dict[str, Any]]:
    """Returns the requests of Feedline's HTTP client so far, by host."""
    engine = sys.modules.get("feedline._engine")
    counted = ("name", "requests", "bytes", "latency_s", "bytes_per_s")
    hosts = engine.network_hosts() if engine is not None else []
    return {host.name: {name: getattr(host, name) for name in counted} for host in hosts}


def _since(before: dict[str, dict[str, Any]], now: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the requests of Feedline's HTTP client since `before`, by host."""
    none = {"requests": 0, "bytes": 0}
    return [
        {**host, **{name: host[name] - before.get(host["name"], none)[name] for name in none}} for host in now.values()
    ]


class ThreadTimes:
    """CPU times of one engine's threads. Threads are identified by name; those of earlier engines are excluded."""

    _owners: ClassVar[dict[str, ThreadTimes]] = {}

    def __init__(self) -> None:
        self._looks: dict[str, int] = {}  # polls of threads that are not the engine's

    def total(self) -> tuple[float, float] | None:
        """Returns the seconds that the threads ran, and the seconds that they were runnable without a CPU. Returns None
        if the kernel does not report these times.
        """
        running = delayed = 0
        threads = os.listdir("/proc/self/task")
        for ended in self._owners.keys() - set(threads):
            self._owners.pop(ended, None)
        for thread in threads:
            try:
                if not self._is_ours(thread):
                    continue
                words = _read(f"/proc/self/task/{thread}/schedstat").split()
            except FileNotFoundError:
                if os.path.exists(f"/proc/self/task/{thread}/stat"):
                    return None
                continue  # it has just ended
            except OSError:
                return None
            running += int(words[0])
            delayed += int(words[1])
        return running / 1e9, delayed / 1e9

    def _is_ours(self, thread: str) -> bool:
        owner = self._owners.get(thread)
        looks = self._looks.get(thread, 0)
        if owner is not None or looks >= _LOOKS_AT_OTHERS:
            return owner is self
        ours = _read(f"/proc/self/task/{thread}/comm").startswith(_THREADS)
        if ours:
            self._owners[thread] = self
        else:
            self._looks[thread] = looks + 1
        return ours


def _read(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, 4096)
    finally:
        os.close(file)


def engine_of(iterator: Any) -> Any:
    """Returns the engine of a Feedline iterator; None if Python or torch produces the batches."""
    pipeline = iterator.__dict__.get("_pipeline")
    if pipeline is not None:
        return pipeline.engine
    return getattr(iterator.__dict__.get("_loader"), "_engine", None)
