# SPDX-License-Identifier: Apache-2.0
"""The loop waits for its loader."""

from ...findings import Entry, Threshold
from ..rules import LOADERS, WAIT_NOTE, Alarm, Occurrences, Seen

WAIT_ALARM = Threshold(0.20, "of the loop's time; the same as for critical findings of diagnose and trace")


def _evaluate(seen: Seen) -> Occurrences:
    for at, (name, _, _, _) in enumerate(seen.now.loaders):
        waits = [r.wait_share for m in seen.recent for n, _, r, _ in m.loaders if n == name and r is not None]
        wait = seen.held(waits)
        if wait is not None and wait >= WAIT_NOTE:
            sentence = f"the loop waits {wait:.0%} of its time for {name}; run `feedline diagnose`"
            yield at, wait >= WAIT_ALARM, sentence


ALARM = Alarm(
    Entry(
        code="loop_waits",
        verb="top",
        title="the loop waits for its loader",
        means="Batches are not ready when the loop requests them.",
        recognised="The loop waits 20 % of its time (10 % for a note).",
        to_do="Run `feedline diagnose`, which proves the cause and predicts the gain of each change.",
        abstains="The condition must last for ten samples.",
        example="the loop waits 69% of its time for pid 13075, loader 0; run `feedline diagnose`",
    ),
    priority=LOADERS,
    evaluate=_evaluate,
)
