# SPDX-License-Identifier: Apache-2.0
"""Each further epoch begins with drawing its order and an empty pipeline."""

from __future__ import annotations

from feedline.diagnose.judging import gains, signals
from feedline.diagnose.judging.case import Case
from feedline.diagnose.judging.cause import Cause, Found, Rule
from feedline.diagnose.judging.fixes import Fix
from feedline.diagnose.judging.shares import NAMED
from feedline.findings import Entry


def _books(case: Case) -> Found | None:
    summary, share = case.summary, case.summary.waits.border
    if share < NAMED:
        return None
    later = max(summary.loop.epochs - 1, 1)
    evidence = [
        f"between epochs the loop waits {1000 * share * summary.loop.loop_s / later:.0f} ms "
        f"longer than for other batches, {later} times"
    ]
    return Found(share, 0.9, evidence)


CAUSE = Cause(
    Entry(
        code="epoch_border",
        verb="diagnose",
        title="each epoch begins with order and first batches",
        means="When an epoch ends nothing is on its way. The next one's order is drawn, its first batches are made, "
        "and the loop waits for both.",
        recognised="The first wait of each further epoch, beyond what a batch usually takes and the start of workers.",
        to_do="Begin the next epoch's batches before this one ends, or make epochs longer.",
        abstains="Nothing of the workers was seen.",
        example="between epochs the loop waits 2000 ms longer than for other batches, 1 times.",
    ),
    rules=(Rule(140, _books),),
    fix=Fix(
        "Begin the next epoch's batches before this one ends: feedline.DataLoader(prefetch_epochs=True, "
        "persistent_workers=True); or make epochs longer.",
        own="Leave epochs at its default, or give their number (epochs=N): the next one's first batches are then "
        "filled while this one ends.",
    ),
    gain=gains.of_share,
    signals=(signals.WORKERS,),
)
