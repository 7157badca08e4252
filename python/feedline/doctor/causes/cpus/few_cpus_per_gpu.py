# SPDX-License-Identifier: Apache-2.0
"""There are few CPUs per GPU."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, page

LEAST = Threshold(2, "CPUs per GPU, including the CPU that launches the GPU's work")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    gpus = len(analysis.machine.gpus)
    if gpus and analysis.machine.cpus.threads < LEAST * gpus:
        cpus = analysis.machine.cpus.threads
        yield Found("warning", (f"{cpus} usable CPU{'s' if cpus > 1 else ''} for {gpus} GPU{'s' if gpus > 1 else ''}",))


CAUSE = Cause(
    page(
        "few_cpus_per_gpu",
        "few CPUs per GPU",
        means="Decoding and transforming the images for one GPU needs several CPUs. With only one or two CPUs, the "
        "GPU waits regardless of num_workers.",
        recognised="The usable CPUs are compared with the GPUs of this machine.",
        to_do="Request more CPUs per GPU from the scheduler; decode with feedline.open(...), which needs fewer CPUs; "
        "or cache decoded pixels with .cache().",
        example="3 usable CPUs for 4 GPUs.",
    ),
    priority=MACHINE + 60,
    evaluate=_evaluate,
)
