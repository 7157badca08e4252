# SPDX-License-Identifier: Apache-2.0
"""The container's CPU quota stops the run."""

from ...findings import Entry, Threshold
from ..rules import HOST, Alarm, Occurrences, Seen

THROTTLED = Threshold(0.10, "of the time, stopped by the quota")


def _evaluate(seen: Seen) -> Occurrences:
    throttled = seen.held(m.host.throttled_share for m in seen.recent)
    if throttled is not None and throttled >= THROTTLED:
        yield 0, True, f"stopped {throttled:.0%} of the time by the CPU quota: fewer workers"


ALARM = Alarm(
    Entry(
        code="cpu_quota",
        verb="top",
        title="the container's CPU quota stops the run",
        means="A quota limits the CPU time of a group of processes per tenth of a second, and stops them for the rest.",
        recognised="The quota stopped the run 10 % of the time.",
        to_do="Use fewer workers or a larger quota.",
        abstains="The condition must last for ten samples.",
        example="stopped 30% of the time by the CPU quota: fewer workers",
    ),
    priority=HOST,
    evaluate=_evaluate,
)
