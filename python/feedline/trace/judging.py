# SPDX-License-Identifier: Apache-2.0
"""What the causes of a trace are judged by, and the shape of one. Each is a file of `causes`."""

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

# Where workers load, a trace of the main process cannot say which of these makes them slow.
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
STAGES_FIX = "more threads if cores are free; smaller images, or `.cache(...)` behind the costly operations"


@dataclass
class Case:
    """One trace: its steps, the loop's waits for the GPU, the busiest GPU if any; and what was found so far."""

    trace: Trace
    steps: Steps
    waits: synchronisation.Waits
    device: Device | None

    def __post_init__(self) -> None:
        self.findings = Findings(self.steps)
        self.durations: NDArray[np.float64] = self.steps.durations.astype(np.float64)

    @cached_property
    def loader_share(self) -> float:
        """Of the steps' time, in the loader's next()."""
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
            evidence.append(f"the GPU was idle in {idle / max(1.0, waits.sum()):.0%} of that time")
        return evidence

    @property
    def loads_in_the_loop(self) -> bool:
        return any("SingleProcess" in kind for kind in self.steps.loader_kinds)

    @cached_property
    def stages_busy(self) -> dict[str, int]:
        """Nanoseconds that Feedline's threads were busy with each stage; empty: the trace holds none of them."""
        column, names = self.trace["stage"], self.trace.names
        busy: dict[str, int] = {}
        for name, spent in zip(column.name.tolist(), (column.end - column.start).tolist(), strict=True):
            if names[name] in _STAGES:
                busy[names[name]] = busy.get(names[name], 0) + spent
        return busy if sum(busy.values()) else {}

    def add_stage(self, cause: str, stage: str) -> None:
        """Of the wait for workers, what Feedline's threads were busy with this stage."""
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
        """Says what of the loader's time the trace cannot tell."""
        share, busy = self.loader_share, self.stages_busy
        if not len(self.steps.loader):
            self.findings.abstain(
                "the loader's calls: no enumerate(DataLoader)#... in the trace; iterate torch's or Feedline's loader "
                "within the profiler",
                "python_main_process",
                *OF_WORKERS,
            )
        elif self.loads_in_the_loop or share < NOTE:
            return
        elif not busy:
            self.findings.abstain(
                f"events of the worker processes, for which the loop waits {share:.0%} of its time: torch.profiler "
                "records the main process alone; run `feedline diagnose -- python train.py`",
                *OF_WORKERS,
            )
        elif busy.get("storage", 0) / sum(busy.values()) * share >= NOTE:
            self.findings.abstain(
                "bytes in flight and time off the CPU while reading: `feedline diagnose` measures them", *_OF_STORAGE
            )


@dataclass(frozen=True)
class Cause:
    """A cause that a trace can show.

    Attributes:
        page: what ``feedline explain`` prints, without the thresholds, which the file's constants give.
        turn: causes are judged in this order.
        judges: adds what it finds to the case's findings, or says what is missing. None: it is judged over ranks.
        of_device: it is judged by the GPU's events, and abstained from where there are none.
    """

    page: Entry
    turn: int
    judges: Callable[[Case], None] | None
    of_device: bool = False

    @property
    def code(self) -> str:
        return self.page.code


def copy_line(row: dict[str, Any]) -> str:
    """Copies of one kind, in words."""
    rate = f"{row['GB_per_s']:.1f} GB/s" if row["GB_per_s"] else "no rate"
    return (
        f"{row['count']} x {row['name']}: {row['bytes'] / 1e6:.1f} MB in {row['ms']:.2f} ms ({rate}), "
        f"{row['overlapped_share']:.0%} of it beside kernels"
    )


def copies_from(device: Device, source: str) -> dict[str, Any] | None:
    """The row of copies to the device from this kind of memory; None: there were none."""
    rows = (row for row in device.copy_kinds() if row["kind"] == "HtoD" and row["source"] == source)
    return next(rows, None)


def waits_for_pinned(waits: synchronisation.Waits) -> list[bool]:
    """Of each wait for the GPU, whether it is for a copy from page-locked memory."""
    return [copy is not None and copy.startswith("Memcpy HtoD (Pinned") for copy in waits.copy]
