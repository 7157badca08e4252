# SPDX-License-Identifier: Apache-2.0
"""There are more workers than usable CPUs."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import LOAD, Analysis, Cause, Found, page

MANY = Threshold(2.0, "workers per usable CPU; with more, each worker gets less than half of a CPU")
PER_CORE = Threshold(1.5, "workers per physical core; a core's second thread adds about a quarter of a core")
WAITING = Threshold(4.0, "workers per usable CPU, if workers wait for a network")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    if analysis.load is None:
        return
    workers, usable = analysis.load.ranks * analysis.load.workers, analysis.machine.cpus.threads
    waits = analysis.source is not None and analysis.source.kind in ("network", "remote")
    cores = analysis.machine.cpus.cores
    is_many = workers > usable or (cores is not None and workers > PER_CORE * cores)
    if not is_many or (waits and workers <= WAITING * usable):
        return
    ranks = f" ({analysis.load.ranks} ranks x {analysis.load.workers})" if analysis.load.ranks > 1 else ""
    words = f"{workers} workers{ranks} on {usable} usable CPU{'s' if usable > 1 else ''}"
    if cores is not None and cores < usable:
        words += f", which are the threads of {cores} physical core{'s' if cores > 1 else ''}"
    if usable < analysis.machine.cpus.online:
        words += f", although the machine has {analysis.machine.cpus.online}"
    yield Found("critical" if workers >= MANY * usable else "warning", (words,))


CAUSE = Cause(
    page(
        "oversubscribed",
        "there are more workers than usable CPUs",
        means="Each worker that decodes needs a CPU. Additional workers compete with each other and with the thread "
        "that launches work on the GPU; loading on 70 to 80 % of the cores, a common rule, can already slow this "
        "thread. Affinity, cpuset and quota determine the usable CPUs, which all ranks on the machine share.",
        recognised="It is a warning if all ranks together have more workers than usable CPUs, or more than one and a "
        "half times as many workers as physical cores; it is critical if they have at least twice as many workers as "
        "usable CPUs. For object "
        "storage and network file systems, where workers mostly wait, it is reported only for at least four times as "
        "many workers as usable CPUs.",
        to_do="Set num_workers as advised above the findings, then measure: feedline tune -- python train.py.",
        example="16 workers on 8 usable CPUs.",
    ),
    priority=LOAD + 60,
    evaluate=_evaluate,
)
