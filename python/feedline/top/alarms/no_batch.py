# SPDX-License-Identifier: Apache-2.0
"""No batch has been delivered for a long time, and none is ready."""

from ...findings import Entry, Threshold
from ..rules import LOADERS, Alarm, Occurrences, Seen

STALL_S = Threshold(30.0, "seconds without a batch, longer than a slow batch takes")


def _evaluate(seen: Seen) -> Occurrences:
    for at, (name, loader, rates, idle_s) in enumerate(seen.now.loaders):
        if rates is not None and idle_s > STALL_S and loader.ready_batches == 0:
            yield at, True, f"{name}: no batch for {idle_s:.0f} s, and none is ready"


ALARM = Alarm(
    Entry(
        code="no_batch",
        verb="top",
        title="no batch for a long time",
        means="The loader is stuck, or its storage does not respond.",
        recognised="No batch was delivered for 30 s, and none is ready.",
        to_do="Check the storage; `loader.stats()` and py-spy show where its threads or workers are blocked.",
        example="pid 13075, loader 0: no batch for 45 s, and none is ready",
    ),
    priority=LOADERS + 10,
    evaluate=_evaluate,
)
