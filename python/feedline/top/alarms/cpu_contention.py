# SPDX-License-Identifier: Apache-2.0
"""The run's threads are ready and have no CPU."""

from ...findings import Entry, Threshold
from ..judging import HOST, Alarm, Seen, Told

DELAYED = Threshold(0.50, "of the wish to run: ready without a CPU as long as with one")
OTHERS = Threshold(0.5, "of the busy CPUs, that the run uses: with less, others have the more of them")


def _judges(seen: Seen) -> Told:
    host, delay = seen.now.host, seen.held(m.host.delay_share for m in seen.recent)
    if delay is not None and delay >= DELAYED and host.cpus_used is not None and host.cpus_busy is not None:
        others = host.cpus_used < host.cpus_busy * OTHERS
        why = "other programs use the CPUs" if others else "it has more busy threads than CPUs"
        yield 0, False, f"this run had no CPU {delay:.0%} of the time it wanted one: {why}"


ALARM = Alarm(
    Entry(
        code="cpu_contention",
        verb="top",
        title="the run's threads are ready and have no CPU",
        means="Other programs have the CPUs, or the run has more busy threads than there are.",
        recognised="Half of the time that CPUs were wanted there was none: a note.",
        to_do="Fewer threads and workers; or a machine of its own.",
        abstains="It has to last for ten looks.",
        example="this run had no CPU 93% of the time it wanted one: other programs use the CPUs",
    ),
    turn=HOST + 10,
    judges=_judges,
)
