# SPDX-License-Identifier: Apache-2.0
"""The container's CPU quota throttles the run."""

from ...findings import Entry, Threshold
from ..rules import HOST, Alarm, Occurrences, Seen

THROTTLED = Threshold(0.10, "fraction of the time for which the quota stops the run")


def _evaluate(seen: Seen) -> Occurrences:
    throttled = seen.held(m.host.throttled_share for m in seen.recent)
    if throttled is not None and throttled >= THROTTLED:
        yield 0, True, f"the CPU quota stops the run {throttled:.0%} of the time: use fewer workers"


ALARM = Alarm(
    Entry(
        code="cpu_quota",
        verb="top",
        title="the container's CPU quota stops the run",
        means="A quota limits the CPU time of a group of processes in each tenth of a second, and stops them for the "
        "rest of it.",
        recognised="The quota stops the run for 10 % of the time.",
        to_do="Use fewer workers or a larger quota.",
        abstains="The condition lasts for fewer than ten samples.",
        example="the CPU quota stops the run 30% of the time: use fewer workers",
    ),
    priority=HOST,
    evaluate=_evaluate,
)
