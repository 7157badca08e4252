# SPDX-License-Identifier: Apache-2.0
"""The input and the interface of causes that a trace can show. Each cause is a file in `causes`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..findings import Entry
from ..findings.finding import NOTE
from . import synchronisation
from .device import Device
from .events import Trace
from .intervals import covered_within, intersection
from .steps import Steps
from .verdicts import Findings

# If workers load, a trace of the main process cannot show which of these slows them down.
OF_WORKERS = (
    "storage_latency",
    "storage_bandwidth",
    "small_files",
    "cpu_decode",
    "cpu_transform",
    "collate",
    "worker_handover",
    "too_few_workers",
    "oversubscribed",
    "cpu_quota",
    "straggling_sample",
)
_OF_STORAGE = ("storage_latency", "storage_bandwidth", "small_files")
_STAGES = ("storage", "decode", "transform")
STAGES_FIX = "use more threads if cores are free, smaller images, or `.cache(...)` after the costly operations"


@dataclass
class Analysis:
    """A trace with its steps, the loop's waits for the GPU, the busiest GPU if there is one, and the findings so
    far.
    """

    trace: Trace
    steps: Steps
    waits: synchronisation.Waits
    device: Device | None

    def __post_init__(self) -> None:
        self.findings = Findings(self.steps)
        self.durations: NDArray[np.float64] = self.steps.durations.astype(np.float64)

    @cached_property
    def loader_share(self) -> float:
        """The share of the steps' time spent in the loader's next()."""
        if not len(self.steps.loader):
            return 0.0
        return float(self.steps.waits.astype(np.float64).sum() / self.durations.sum())

    @cached_property
    def loader_evidence(self) -> list[str]:
        steps, waits = self.steps, self.steps.waits.astype(np.float64)
        evidence = [
            f"the loop was in the loader's next() for {waits.mean() / 1e6:.2f} ms of a step's "
            f"{self.durations.mean() / 1e6:.2f} ms ({self.loader_share:.0%})"
        ]
        if self.device is not None:
            idle = covered_within(intersection(self.device.idle, steps.loader), steps.windows).sum()
            evidence.append(f"the GPU was idle for {idle / max(1.0, waits.sum()):.0%} of that time")
        return evidence

    @property
    def loads_in_the_loop(self) -> bool:
        return any("SingleProcess" in kind for kind in self.steps.loader_kinds)

    @cached_property
    def stages_busy(self) -> dict[str, int]:
        """The busy time of Feedline's threads in nanoseconds, by stage; empty if the trace has no stages."""
        column, names = self.trace["stage"], self.trace.names
        busy: dict[str, int] = {}
        for name, spent in zip(column.name.tolist(), (column.end - column.start).tolist(), strict=True):
            if names[name] in _STAGES:
                busy[names[name]] = busy.get(names[name], 0) + spent
        return busy if sum(busy.values()) else {}

    def add_stage(self, cause: str, stage: str) -> None:
        """Adds a finding for the part of the wait for workers that this stage explains, by the busy time of Feedline's
        threads.
        """
        busy = self.stages_busy
        if not len(self.steps.loader) or self.loads_in_the_loop or self.loader_share < NOTE or not busy:
            return
        part = busy.get(stage, 0) / sum(busy.values())
        self.findings.add(
            cause,
            self.steps.loader,
            0.7,
            [*self.loader_evidence, f"Feedline's threads spent {part:.0%} of their busy time in the stage {stage}"],
            STAGES_FIX,
            gained=(0.3, 1.0),
            per_step=self.steps.waits * part,
        )

    def abstain_from_loading(self) -> None:
        """Reports the parts of the loader's time that the trace cannot explain."""
        share, busy = self.loader_share, self.stages_busy
        if not len(self.steps.loader):
            self.findings.abstain(
                "the loader's calls: the trace has no enumerate(DataLoader)#...; iterate torch's or Feedline's loader "
                "while the profiler runs",
                "python_main_process",
                *OF_WORKERS,
            )
        elif self.loads_in_the_loop or share < NOTE:
            return
        elif not busy:
            self.findings.abstain(
                f"events of the worker processes, for which the loop waits {share:.0%} of its time: torch.profiler "
                "records only the main process; run `feedline diagnose -- python train.py`",
                *OF_WORKERS,
            )
        elif busy.get("storage", 0) / sum(busy.values()) * share >= NOTE:
            self.findings.abstain(
                "bytes in flight and time off the CPU while reading, which `feedline diagnose` measures", *_OF_STORAGE
            )


@dataclass(frozen=True)
class Cause:
    """A cause that a trace can show.

    Attributes:
        page: the page that ``feedline explain`` prints. The page text contains no thresholds, which are constants in
        the cause's file.
        priority: determines the order in which causes are evaluated.
        evaluate: adds findings to the analysis, or reports missing data. None if the cause compares ranks.
        of_device: whether the cause needs GPU events; if so, it is skipped when there are none.
    """

    page: Entry
    priority: int
    evaluate: Callable[[Analysis], None] | None
    of_device: bool = False

    @property
    def code(self) -> str:
        return self.page.code


def copy_line(row: dict[str, Any]) -> str:
    """Returns a description of one kind of copy."""
    rate = f"{row['GB_per_s']:.1f} GB/s" if row["GB_per_s"] else "no rate"
    return (
        f"{row['count']} x {row['name']}: {row['bytes'] / 1e6:.1f} MB in {row['ms']:.2f} ms ({rate}), "
        f"{row['overlapped_share']:.0%} of it overlapped with kernels"
    )


def copies_from(device: Device, source: str) -> dict[str, Any] | None:
    """Returns the row of copies to the device from this kind of memory, or None."""
    rows = (row for row in device.copy_kinds() if row["kind"] == "HtoD" and row["source"] == source)
    return next(rows, None)


def waits_for_pinned(waits: synchronisation.Waits) -> list[bool]:
    """Returns for each wait for the GPU whether it is a wait for a copy from page-locked memory."""
    return [copy is not None and copy.startswith("Memcpy HtoD (Pinned") for copy in waits.copy]
