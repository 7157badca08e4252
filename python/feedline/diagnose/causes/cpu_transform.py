# SPDX-License-Identifier: Apache-2.0
"""Transforms and the dataset's own Python code saturate the CPUs."""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.rules import contradictions, gains, production, signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Claim, Found, Limit, Rule
from feedline.diagnose.rules.certainty import CPU_OF_PAGING
from feedline.diagnose.rules.fixes import Fix, drop_in_may_help
from feedline.diagnose.rules.shares import UNCERTAIN
from feedline.findings import Entry, Threshold

MOSTLY_KERNEL = Threshold(0.5, "fraction of the workers' CPU time in the kernel above which this cause is uncertain")
_MOST_TRANSFORMS = 3  # the slowest, which are named


def _evaluate(analysis: Analysis) -> Found:
    found, transforms = production.found(analysis, 0.9, "transform", "python"), analysis.summary.making.transforms
    if not transforms:
        return found
    slowest = ", ".join(f"{name} {ms:.2f} ms" for name, ms in list(transforms.items())[:_MOST_TRANSFORMS])
    return replace(found, evidence=[*found.evidence, f"per sample: {slowest}"])


def _kernel(claim: Claim) -> str | None:
    kernel = claim.summary.host.in_kernel or 0.0
    if kernel <= MOSTLY_KERNEL or claim.summary.native:
        return None
    return f"{kernel:.0%} of the workers' CPU time was spent in the kernel, on system calls and page faults"


CAUSE = Cause(
    Entry(
        code="cpu_transform",
        verb="diagnose",
        title="transforms and the dataset's own code saturate the CPUs",
        means="Processing the samples after they are read and decoded takes more CPU time than the machine has.",
        recognised="Measures the CPU time of transforms and the dataset's own code while batches are late.",
        to_do="Move work out of Python, do it once instead of in every epoch, or move it to the device.",
        abstains="The stages of a batch were not observed.",
        example="a batch takes 80.0 ms to produce, 79.0 ms of it CPU; by stage: transform 60 %, own code 40 %.",
    ),
    rules=(Rule(260, _evaluate),),
    fix=Fix(
        "Move work out of the dataset's Python code: use native operations (feedline.DataLoader lowers torchvision's) "
        "or vectorised NumPy, or preprocess the data once offline.",
        own='Transform less per epoch: put deterministic operations before .cache(...); dtype="uint8" leaves '
        "normalization to the device.",
        lowered='Transform less per epoch: feedline.open(SOURCE)...cache("memory") after deterministic operations.',
        without_drop_in="Move work out of the dataset's Python code: use vectorised NumPy, or preprocess the data "
        "once offline.",
    ),
    gain=gains.stages("transform", "python"),
    drop_in=drop_in_may_help,
    signals=(signals.WORKERS, signals.STAGES),
    contradicted={
        "the CPUs were idle": contradictions.idle_cpus,
        "other programs used the CPUs": contradictions.other_programs,
    },
    limits={"the kernel's CPU time": Limit(UNCERTAIN, _kernel)},
    paging_instead=CPU_OF_PAGING,
)
