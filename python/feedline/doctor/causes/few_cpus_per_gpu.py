# SPDX-License-Identifier: Apache-2.0
"""Few CPUs for each GPU."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import MACHINE, Case, Cause, Found, page

LEAST = Threshold(2, "CPUs for each GPU: one of them launches its work")


def _judge(case: Case) -> Iterator[Found]:
    gpus = len(case.machine.gpus)
    if gpus and case.machine.cpus.threads < LEAST * gpus:
        cpus = case.machine.cpus.threads
        yield Found("warning", (f"{cpus} usable CPU{'s' if cpus > 1 else ''} for {gpus} GPU{'s' if gpus > 1 else ''}",))


CAUSE = Cause(
    page(
        "few_cpus_per_gpu",
        "few CPUs for each GPU",
        means="Decoding and transforms of a GPU's images take several CPUs. With one or two of them the GPU "
        "waits, whatever num_workers is.",
        recognised="Usable CPUs against the GPUs of this machine.",
        to_do="Ask the scheduler for more CPUs per GPU; decode with feedline.open(...), which takes less; "
        "keep decoded pixels: .cache().",
        example="3 usable CPUs for 4 GPUs.",
    ),
    turn=MACHINE + 60,
    judge=_judge,
)
