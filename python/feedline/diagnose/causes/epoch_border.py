# SPDX-License-Identifier: Apache-2.0
"""Each epoch after the first starts with an empty pipeline and must first draw its sample order."""

from __future__ import annotations

from feedline.diagnose.rules import gains, signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Rule
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import NAMED
from feedline.findings import Entry


def _evaluate(analysis: Analysis) -> Found | None:
    summary, share = analysis.summary, analysis.summary.waits.border
    if share < NAMED:
        return None
    later = max(summary.loop.epochs - 1, 1)
    evidence = [
        f"between epochs the loop waits {1000 * share * summary.loop.loop_s / later:.0f} ms "
        f"longer than for other batches ({later} times)"
    ]
    return Found(share, 0.9, evidence)


CAUSE = Cause(
    Entry(
        code="epoch_border",
        verb="diagnose",
        title="each epoch starts with an empty pipeline",
        means="When an epoch ends, no batch is in flight. The loop waits while the next epoch's order is drawn and "
        "its first batches are produced.",
        recognised="Measures the first wait of each epoch after the first, minus the usual time of a batch and the "
        "start of workers.",
        to_do="Start the next epoch's batches before the current epoch ends, or make epochs longer.",
        abstains="The workers were not observed.",
        example="between epochs the loop waits 2000 ms longer than for other batches (1 times).",
    ),
    rules=(Rule(140, _evaluate),),
    fix=Fix(
        "Start the next epoch's batches before the current epoch ends: feedline.DataLoader(prefetch_epochs=True, "
        "persistent_workers=True); or make epochs longer.",
        own="Keep the default value of epochs, or pass their number (epochs=N): the first batches of the next epoch "
        "are "
        "then prefetched before the current epoch ends.",
    ),
    gain=gains.of_share,
    signals=(signals.WORKERS,),
)
