# SPDX-License-Identifier: Apache-2.0
"""Generated figures of loaders, hosts and GPUs, and the views that show them."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from feedline.machine import gpu, host, memory, processes
from feedline.machine.disks import Disk
from feedline.top import published, rates, screen, watch
from feedline.top.alarms import Moment


def stage(**values: Any) -> published.Stage:
    return published.Stage(
        **{"items": 0, "bytes": 0, "busy_s": 0, "blocked_s": 0, "starved_s": 0, "latency_us": ()} | values
    )


def loader(**values: Any) -> published.Loader:
    known: dict[str, Any] = dict.fromkeys((f.name for f in dataclasses.fields(published.Loader)), None)
    return published.Loader(
        **known
        | {"number": 0, "kind": "Loader", "source": "train", "batches": 0, "bad_samples": 0, "stages": {}}
        | values
    )


MEMORY = memory.Memory(1_000_000, 0, None, None, 0, 10**9, ())


HOST = host.Figures(
    pids=(7,),
    cpus_usable=4.0,
    threads=9,
    resident_bytes=2_000_000,
    available_bytes=10**10,
    disks=(Disk("sda", 0.1, 0.2),),
    memory=MEMORY,
    notes=(),
    **dict.fromkeys(
        (
            *("cpus_used", "cpus_busy", "delay_share", "read_bytes_per_s", "swapped_pages_per_s", "cpu_pressure"),
            *("io_pressure", "memory_pressure", "throttled_share", "limit_hits_per_s"),
            *("disk_reads_per_s", "disk_bytes_per_s", "disk_read_ms"),
        )
    ),
)


GPU = gpu.Reading(0, "GPU", 0.1, 10**9, 10**10, None, None, None, None, None, ())


BUSY_GPU = dataclasses.replace(GPU, utilisation=0.9)


def loader_rates(**values: Any) -> rates.LoaderRates:
    return dataclasses.replace(rates.UNKNOWN, **values)


class NoGpus:
    unavailable = "none"

    def read(self) -> tuple[gpu.Reading, ...]:
        return ()


def moment(gpus: tuple[gpu.Reading, ...] = (), waits: float | None = None, **of_host: Any) -> Moment:
    seen = () if waits is None else (("loader 0", loader(ready_batches=0), loader_rates(wait_share=waits), 0.0),)
    return Moment(seen, dataclasses.replace(HOST, **of_host), gpus)


def identity(pid: int = 7, command: str = "python train.py") -> processes.Identity:
    return processes.Identity(pid, 1, os.geteuid(), 1000, command)


def view(loaders: tuple[watch.LoaderView, ...] = (), **values: Any) -> watch.View:
    usual: dict[str, Any] = {
        "process": identity(),
        "age_s": 3700.0,
        "ended": False,
        "host": HOST,
        "gpus": (),
        "gpus_unavailable": "no NVIDIA driver",
        "alarms": (),
        "notes": (),
        "others": (),
    }
    return watch.View(loaders=loaders, **usual | values)


def loader_view(totals: published.Loader, pid: int = 7, rank: int | None = None, **values: Any) -> watch.LoaderView:
    usual: dict[str, Any] = {"rates": None, "idle_s": 0.0, "silent_s": 0.0, "waits": ()}
    return watch.LoaderView(pid=pid, rank=rank, world_size=None, totals=totals, **usual | values)


def texts(*arguments: Any, **named: Any) -> list[str]:
    return [line.plain for line in screen.lines(*arguments, **named)]


class Publishing:
    """Processes as returned by :func:`published.find`."""

    def __init__(self) -> None:
        self.now = published.Found((), (), ())

    def __call__(self, user: int, timeout_s: float) -> published.Found:
        return self.now

    def put(self, *found: published.Process, unanswered: tuple[int, ...] = ()) -> None:
        self.now = published.Found(found, unanswered, ())


def process(pid: int, time_s: float, *loaders: published.Loader, rank: int | None = None) -> published.Process:
    return published.Process(pid, os.geteuid(), rank, None, time_s, loaders)
