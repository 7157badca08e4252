# SPDX-License-Identifier: Apache-2.0
"""Causes, by the names that `feedline diagnose` uses, as far as a trace can show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import synchronisation
from .device import Device
from .events import Trace
from .intervals import EMPTY, covered_within, intersection, join, total
from .steps import Steps
from .verdicts import NOTE, Findings

_BUSY = 0.9  # of the time: a GPU that works so much has no need of a faster loader
# Where workers load, a trace of the main process cannot say which of these makes them slow.
WORKER_CAUSES = (
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


@dataclass
class Judge:
    """What the verdicts of one trace are made from: its steps, the loop's waits for the GPU, the busiest GPU if any."""

    trace: Trace
    steps: Steps
    waits: synchronisation.Waits
    device: Device | None

    def __post_init__(self) -> None:
        self.findings = Findings(self.steps)
        self._durations = self.steps.durations.astype(np.float64)

    def judge(self) -> Findings:
        """All of it."""
        if not self._durations.sum():
            self.findings.abstain("events: the trace holds none that a step could be made of", "compute_bound")
            return self.findings
        loader_share = self._loader()
        if self.device is None:
            self.findings.abstain(
                "events of the GPU: record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
                *("host_to_device", "unpinned_copy", "blocking_copy", "loop_synchronisation", "precision_not_reduced"),
            )
        else:
            self._copies()
            self._synchronisation()
            self._precision()
        self._compute(loader_share)
        self.findings.verdicts.sort(key=lambda verdict: -verdict["share"])
        return self.findings

    def _loader(self) -> float:
        steps = self.steps
        if not len(steps.loader):
            self.findings.abstain(
                "the loader's calls: no enumerate(DataLoader)#... in the trace; iterate torch's or Feedline's loader "
                "within the profiler",
                "python_main_process",
                *WORKER_CAUSES,
            )
            return 0.0
        waits = steps.waits.astype(np.float64)
        share = float(waits.sum() / self._durations.sum())
        evidence = [
            f"the loop was in the loader's next() for {waits.mean() / 1e6:.2f} ms of a step's "
            f"{self._durations.mean() / 1e6:.2f} ms ({share:.0%})"
        ]
        if self.device is not None:
            idle = covered_within(intersection(self.device.idle, steps.loader), steps.windows).sum()
            evidence.append(f"the GPU was idle in {idle / max(1.0, waits.sum()):.0%} of that time")
        if any("SingleProcess" in kind for kind in steps.loader_kinds):
            # without a GPU the workers take the cores that the operators compute on
            least = 0.5 if self.device is not None else 0.2
            self.findings.add(
                "python_main_process",
                steps.loader,
                0.95,
                [*evidence, "the iterator is _SingleProcessDataLoaderIter: num_workers=0 loads within the loop"],
                'num_workers="auto" with feedline.DataLoader, or num_workers from 2 on',
                gained=(least, 1.0),
            )
        elif share >= NOTE and not self._stages(share, evidence):
            self.findings.abstain(
                f"events of the worker processes, for which the loop waits {share:.0%} of its time: torch.profiler "
                "records the main process alone; run `feedline diagnose -- python train.py`",
                *WORKER_CAUSES,
            )
        return share

    def _stages(self, share: float, evidence: list[str]) -> bool:
        """With Feedline's own stages in the trace: the wait, divided by what the threads were busy with."""
        column, names = self.trace["stage"], self.trace.names
        busy: dict[str, int] = {}
        for name, spent in zip(column.name.tolist(), (column.end - column.start).tolist(), strict=True):
            if names[name] in ("storage", "decode", "transform"):
                busy[names[name]] = busy.get(names[name], 0) + spent
        everything = sum(busy.values())
        if not everything:
            return False
        for stage, cause in (("decode", "cpu_decode"), ("transform", "cpu_transform")):
            part = busy.get(stage, 0) / everything
            self.findings.add(
                cause,
                self.steps.loader,
                0.7,
                [*evidence, f"Feedline's threads spent {part:.0%} of their busy time in the stage {stage}"],
                "more threads if cores are free; smaller images, or `.cache(...)` behind the costly operations",
                gained=(0.3, 1.0),
                per_step=self.steps.waits * part,
            )
        if busy.get("storage", 0) / everything * share >= NOTE:
            self.findings.abstain(
                "bytes in flight and time off the CPU while reading: `feedline diagnose` measures them",
                "storage_latency",
                "storage_bandwidth",
                "small_files",
            )
        return True

    def _copies(self) -> None:
        device, waits = self.device, self.waits
        assert device is not None
        kinds = [row for row in device.copy_kinds() if row["kind"] == "HtoD"]
        pageable = next((row for row in kinds if row["source"] == "Pageable"), None)
        pinned = next((row for row in kinds if row["source"] == "Pinned"), None)
        waited = [copy is not None and copy.startswith("Memcpy HtoD (Pinned") for copy in waits.copy]
        if pageable:
            self.findings.add(
                "unpinned_copy",
                device.exposed("HtoD", "Pageable"),
                0.95,
                [_copy_line(pageable), "copies from pageable memory hold the host and overlap with no kernel behind"],
                "pin_memory=True and .to(device, non_blocking=True) together",
                gained=(0.4, 1.0),
            )
        if pinned and any(waited):
            lost = join(waits.idle_after(device, waited), device.exposed("HtoD", "Pinned"))
            self.findings.add(
                "blocking_copy",
                lost,
                0.9,
                [_copy_line(pinned), f"the host waited for {sum(waited)} of them: .to() without non_blocking=True"],
                ".to(device, non_blocking=True), under torch.cuda.stream(...) with a stream of its own one batch ahead",
                gained=(0.5, 1.0),
            )
        elif pinned:
            self.findings.add(
                "host_to_device",
                device.exposed("HtoD", "Pinned"),
                0.9,
                [_copy_line(pinned), "no kernel ran beside the copies: they and the kernels share a stream"],
                "copy the next batch on a stream of its own, torch.cuda.Stream(), or send uint8 and convert on the GPU",
                gained=(0.7, 1.0),
            )

    def _synchronisation(self) -> None:
        device, waits, steps = self.device, self.waits, self.steps
        assert device is not None
        of_loop = [copy is None or not copy.startswith("Memcpy HtoD") for copy in waits.copy]
        inside_loader = covered_within(steps.loader, np.stack((waits.start, waits.start + 1), axis=1)) > 0
        which = [mine and not loader for mine, loader in zip(of_loop, inside_loader.tolist(), strict=True)]
        if not any(which):
            if not len(self.trace["runtime"]):
                self.findings.abstain("calls of the CUDA runtime (ProfilerActivity.CUDA)", "loop_synchronisation")
            return
        rows = [
            row
            for row in synchronisation.table(waits, device, steps)
            if not (row["copy"] or "").startswith("Memcpy HtoD")
        ]
        places = [
            f"{row['operator']}{' in ' + row['place'] if row['place'] else ''}: {row['per_step']:.1f} per step, "
            f"GPU idle {row['gpu_idle_after_ms']:.2f} ms behind them"
            for row in rows[:3]
        ]
        if not any(row["place"] for row in rows):
            places.append("record with_stack=True to see which line asks")
        self.findings.add(
            "loop_synchronisation",
            waits.idle_after(device, which),
            0.85,
            places,
            "keep values on the GPU: .detach() instead of .item(), read them every hundredth step, no boolean masks of "
            "unknown size",
            gained=(0.3, 1.0),
        )

    def _precision(self) -> None:
        device = self.device
        assert device is not None
        facts = device.tensor_cores()
        majors = [p.get("computeMajor") for p in self.trace.device_properties]
        major = max((major for major in majors if isinstance(major, int)), default=0)
        if not major:
            self.findings.abstain("the GPU's compute capability (deviceProperties)", "precision_not_reduced")
            return
        if major < 7 or facts["share_of_matrix_time"] is None or facts["share_of_matrix_time"] >= 0.5:
            return
        spent = facts["plain_matrix_ms"] * 1e6
        per_step = self._durations / self._durations.sum() * spent
        self.findings.add(
            "precision_not_reduced",
            EMPTY,
            0.6,
            [
                f"{facts['plain_matrix_ms']:.1f} ms in products and convolutions whose names show no Tensor Cores, "
                f"{1 - facts['share_of_matrix_time']:.0%} of such time (inferred from names)"
            ],
            "torch.autocast with bfloat16 (float16 and GradScaler before Ampere); channels a multiple of 8",
            gained=(0.3, 0.8),
            per_step=per_step,
        )

    def _compute(self, loader_share: float) -> None:
        device = self.device
        if device is not None:
            busy = total(device.busy) / max(1, device.window[1] - device.window[0])
            evidence = [f"the GPU is busy {busy:.0%} of the time"]
            if busy < _BUSY:
                return
        elif len(self.steps.loader) and loader_share < NOTE:
            busy, evidence = 1.0 - loader_share, []
        else:
            return
        if len(self.steps.loader):
            evidence.append(f"the loop waits {loader_share:.1%} of its time for the loader")
        explained = sum(verdict["share"] for verdict in self.findings.verdicts)
        self.findings.add(
            "compute_bound",
            EMPTY,
            0.9,
            evidence,
            "nothing in the loader will help: the model, its precision and its operators are what takes the time",
            gained=(0.0, 0.0),
            per_step=self._durations * max(0.0, busy - explained),
        )


def _copy_line(row: dict[str, Any]) -> str:
    rate = f"{row['GB_per_s']:.1f} GB/s" if row["GB_per_s"] else "no rate"
    return (
        f"{row['count']} x {row['name']}: {row['bytes'] / 1e6:.1f} MB in {row['ms']:.2f} ms ({rate}), "
        f"{row['overlapped_share']:.0%} of it beside kernels"
    )
