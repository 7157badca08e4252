# SPDX-License-Identifier: Apache-2.0
"""A busy GPU's PCIe link is slower than it could be."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import MACHINE, Case, Cause, Found, page

BUSY = Threshold(0.5, "of the time with a kernel, of every GPU: which of them is at which place is not told")


def _judge(case: Case) -> Iterator[Found]:
    busy = [gpu for gpu in case.machine.gpus if gpu.utilisation is not None and gpu.utilisation >= BUSY]
    if len(busy) < len(case.machine.gpus) or not busy:
        return
    for link in case.machine.gpu_links:
        if link.speed is not None and link.most_speed is not None and link.speed < link.most_speed:
            words = f"the GPU at {link.place} runs at {link.speed:g} of {link.most_speed:g} GT/s though it computes"
            yield Found("warning", (words,), about={"gpu": link.place})


CAUSE = Cause(
    page(
        "pcie_slow",
        "a busy GPU's PCIe link is slower than it could be",
        means="Each generation doubles the speed of a lane. A setting of the firmware, a riser cable or "
        "errors on the link hold it at an older one.",
        recognised="The speed now against what the card allows, while its GPU computes: idle cards lower it, which "
        "is no fault.",
        to_do="Set the slot to its generation in the firmware, without a riser; nvidia-smi -q -d PERFORMANCE "
        "shows errors of the link.",
        abstains="A GPU is idle, or its utilisation is unknown.",
        example="the GPU at 0000:17:00.0 runs at 8 of 16 GT/s though it computes.",
    ),
    turn=MACHINE + 40,
    judge=_judge,
)
