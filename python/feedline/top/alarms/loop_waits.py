# SPDX-License-Identifier: Apache-2.0
"""The loop waits for its loader."""

from ...findings import Entry, Threshold
from ..rules import LOADERS, WAIT_NOTE, Alarm, Occurrences, Seen

WAIT_ALARM = Threshold(
    0.20, "share of the loop's time from which a wait is an alarm, as for critical findings of diagnose and trace"
)


def _evaluate(seen: Seen) -> Occurrences:
    for at, (name, _, _, _) in enumerate(seen.now.loaders):
        waits = [r.wait_share for m in seen.recent for n, _, r, _ in m.loaders if n == name and r is not None]
        wait = seen.held(waits)
        if wait is not None and wait >= WAIT_NOTE:
            sentence = f"the loop waits {wait:.0%} of its time for {name}; run `feedline diagnose`"
            yield at, wait >= WAIT_ALARM, sentence
    for at, loop in enumerate(seen.now.loops, len(seen.now.loaders)):
        wait = seen.held(one.wait_share for m in seen.recent for one in m.loops if one.pid == loop.pid)
        if wait is not None and wait >= WAIT_NOTE:
            yield (
                at,
                wait >= WAIT_ALARM,
                f"the loop of pid {loop.pid} waits about {wait:.0%} of its time for its workers; run `feedline "
                "diagnose`",
            )


ALARM = Alarm(
    Entry(
        code="loop_waits",
        verb="top",
        title="the loop waits for its loader",
        means="Batches are not ready when the loop requests them.",
        recognised="The loop waits for 20 % of its time (10 % for a note). For torch's DataLoader, the wait is "
        "estimated from samples of the system call in which the loop's main thread is.",
        to_do="Run `feedline diagnose`, which proves the cause and predicts the gain of each change.",
        abstains="The condition lasts for fewer than ten samples.",
        example="the loop waits 69% of its time for pid 13075, loader 0; run `feedline diagnose`",
    ),
    priority=LOADERS,
    evaluate=_evaluate,
)
