# SPDX-License-Identifier: Apache-2.0
"""The CPUs are used up by transforms and the dataset's own Python."""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.judging import contradictions, gains, making, signals
from feedline.diagnose.judging.case import Case
from feedline.diagnose.judging.cause import Cause, Found, Rule
from feedline.diagnose.judging.certainty import CPU_OF_PAGING
from feedline.diagnose.judging.fixes import Fix
from feedline.findings import Entry

_MOST_TRANSFORMS = 3  # that are named, the slowest


def _books(case: Case) -> Found:
    found, transforms = making.found(case, 0.9, "transform", "python"), case.summary.making.transforms
    if not transforms:
        return found
    slowest = ", ".join(f"{name} {ms:.2f} ms" for name, ms in list(transforms.items())[:_MOST_TRANSFORMS])
    return replace(found, evidence=[*found.evidence, f"per sample: {slowest}"])


CAUSE = Cause(
    Entry(
        code="cpu_transform",
        verb="diagnose",
        title="the CPUs are used up by transforms and the dataset's own code",
        means="What is done with each sample after it was read and decoded takes more CPU than the machine has for it "
        "in the time of a step.",
        recognised="Thread CPU of transforms and of the dataset's own code, within the time in which batches are late.",
        to_do="Move work out of Python, do it once instead of in each epoch, or leave it to the device.",
        abstains="The stages of a batch were not seen.",
        example="a batch takes 80.0 ms to make, 79.0 ms of it CPU; of it: transform 60 %, own code 40 %.",
    ),
    rules=(Rule(260, _books),),
    fix=Fix(
        "Move work out of the dataset's Python: native operations (feedline.DataLoader lowers torchvision's), "
        "vectorised NumPy, or prepare it once offline.",
        own='Transform less per epoch: what is not random goes in front of .cache(...), and dtype="uint8" leaves '
        "normalising to the device.",
        lowered='Transform less per epoch: feedline.open(SOURCE)...cache("memory") behind what is not random.',
    ),
    gain=gains.stages("transform", "python"),
    signals=(signals.WORKERS, signals.STAGES),
    contradicted={"the CPUs were idle": contradictions.idle_cpus},
    beside_paging=CPU_OF_PAGING,
)
