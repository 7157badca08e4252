# SPDX-License-Identifier: Apache-2.0
"""More workers than CPUs that may be used."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import LOAD, Case, Cause, Found, page

MANY = Threshold(2.0, "workers per usable CPU: each has less than half of one")
WAITING = Threshold(4.0, "workers per usable CPU, where they wait for a network")


def _judge(case: Case) -> Iterator[Found]:
    if case.load is None:
        return
    workers, usable = case.load.ranks * case.load.workers, case.machine.cpus.threads
    waits = case.source is not None and case.source.kind in ("network", "remote")
    if workers <= usable or (waits and workers <= WAITING * usable):
        return
    ranks = f" ({case.load.ranks} ranks x {case.load.workers})" if case.load.ranks > 1 else ""
    words = f"{workers} workers{ranks} on {usable} usable CPU{'s' if usable > 1 else ''}"
    if usable < case.machine.cpus.online:
        words += f", of {case.machine.cpus.online} that the machine has"
    yield Found("critical" if workers >= MANY * usable else "warning", (words,))


CAUSE = Cause(
    page(
        "oversubscribed",
        "more workers than CPUs that may be used",
        means="Workers that decode need a CPU each. More than there are take turns, and take them from the "
        "thread that launches work on the GPU. CPUs are those of affinity, cpuset and quota, shared by "
        "all ranks of the machine, not those that the machine has.",
        recognised="All ranks' workers against the usable CPUs: a warning above them, critical from twice as many. "
        "Not said of object storage and network file systems, where workers wait more than they "
        "compute, below four times as many.",
        to_do="num_workers as advised above the findings, then measure: feedline tune -- python train.py.",
        example="16 workers on 8 usable CPUs.",
    ),
    turn=LOAD + 60,
    judge=_judge,
)
