# SPDX-License-Identifier: Apache-2.0
"""There are more workers than usable CPUs."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..rules import LOAD, Analysis, Cause, Found, page

MANY = Threshold(2.0, "workers per usable CPU: each worker gets less than half of a CPU")
WAITING = Threshold(4.0, "workers per usable CPU, if workers wait for a network")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    if analysis.load is None:
        return
    workers, usable = analysis.load.ranks * analysis.load.workers, analysis.machine.cpus.threads
    waits = analysis.source is not None and analysis.source.kind in ("network", "remote")
    if workers <= usable or (waits and workers <= WAITING * usable):
        return
    ranks = f" ({analysis.load.ranks} ranks x {analysis.load.workers})" if analysis.load.ranks > 1 else ""
    words = f"{workers} workers{ranks} on {usable} usable CPU{'s' if usable > 1 else ''}"
    if usable < analysis.machine.cpus.online:
        words += f", although the machine has {analysis.machine.cpus.online}"
    yield Found("critical" if workers >= MANY * usable else "warning", (words,))


CAUSE = Cause(
    page(
        "oversubscribed",
        "more workers than usable CPUs",
        means="Workers that decode need a CPU each. Additional workers compete with each other and with the "
        "thread that launches work on the GPU. Usable CPUs are those of affinity, cpuset and quota, shared by "
        "all ranks on the machine.",
        recognised="Compares all ranks' workers with the usable CPUs: a warning above that number, critical from "
        "twice as many. For object storage and network file systems, where workers mostly wait, only reported from "
        "four times as many.",
        to_do="Set num_workers as advised above the findings, then measure: feedline tune -- python train.py.",
        example="16 workers on 8 usable CPUs.",
    ),
    priority=LOAD + 60,
    evaluate=_evaluate,
)
