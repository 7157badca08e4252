# SPDX-License-Identifier: Apache-2.0
"""A busy GPU's PCIe link is slower than possible."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, page

BUSY = Threshold(
    0.5,
    "share of the time in which a kernel runs; every GPU must reach it, because GPUs are not matched to bus addresses",
)


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    busy = [gpu for gpu in analysis.machine.gpus if gpu.utilisation is not None and gpu.utilisation >= BUSY]
    if len(busy) < len(analysis.machine.gpus) or not busy:
        return
    for link in analysis.machine.gpu_links:
        if link.speed is not None and link.most_speed is not None and link.speed < link.most_speed:
            words = f"the GPU at {link.place} runs at {link.speed:g} of {link.most_speed:g} GT/s although it is busy"
            yield Found("warning", (words,), about={"gpu": link.place})


CAUSE = Cause(
    page(
        "pcie_slow",
        "a busy GPU's PCIe link is slower than possible",
        means="Each generation doubles the speed of a lane. A firmware setting, a riser cable or "
        "link errors limit the link to an older generation.",
        recognised="The current speed is below the card's maximum while its GPU is busy. Idle cards reduce the speed, "
        "which is normal.",
        to_do="Set the slot to its PCIe generation in the firmware, and remove risers; nvidia-smi -q -d PERFORMANCE "
        "shows link errors.",
        abstains="A GPU is idle, or its utilization is unknown.",
        example="the GPU at 0000:17:00.0 runs at 8 of 16 GT/s although it is busy.",
    ),
    priority=MACHINE + 40,
    evaluate=_evaluate,
)
