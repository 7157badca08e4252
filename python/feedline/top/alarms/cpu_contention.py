# SPDX-License-Identifier: Apache-2.0
"""The run's threads are runnable but wait for a CPU."""

from ...findings import Entry, Threshold
from ..rules import HOST, Alarm, Occurrences, Seen

DELAYED = Threshold(0.50, "share of the runnable time without a CPU above which threads wait longer than they run")
OTHERS = Threshold(
    0.5, "fraction of the busy CPUs used by the run, below which other programs use more CPUs than the run"
)


def _evaluate(seen: Seen) -> Occurrences:
    host, delay = seen.now.host, seen.held(m.host.delay_share for m in seen.recent)
    if delay is not None and delay >= DELAYED and host.cpus_used is not None and host.cpus_busy is not None:
        others = host.cpus_used < host.cpus_busy * OTHERS
        why = "other programs use the CPUs" if others else "the run has more busy threads than CPUs"
        yield 0, False, f"this run had no CPU for {delay:.0%} of the time in which it was runnable: {why}"


ALARM = Alarm(
    Entry(
        code="cpu_contention",
        verb="top",
        title="the run's threads are ready to run but have no CPU",
        means="Other programs use the CPUs, or the run has more busy threads than CPUs.",
        recognised="Threads had no CPU for half of the time in which they were ready to run (a note).",
        to_do="Use fewer threads and workers, or a dedicated machine.",
        abstains="The condition lasts for fewer than ten samples.",
        example="this run had no CPU for 93% of the time in which it was runnable: other programs use the CPUs",
    ),
    priority=HOST + 10,
    evaluate=_evaluate,
)
