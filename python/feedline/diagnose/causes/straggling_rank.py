# SPDX-License-Identifier: Apache-2.0
"""One rank waits for its data, and all others wait for that rank."""

from __future__ import annotations

from feedline.diagnose.rules import gains, signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Rule
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import IDLE_LOADER
from feedline.findings import Entry


def _evaluate(analysis: Analysis) -> Found | None:
    ranks = analysis.summary.of_ranks.ranks
    if len(ranks) < 2 or analysis.summary.of_ranks.ranks_alike:
        return None
    others = sorted(ranks)[: len(ranks) - 1]
    slowest, usual = max(ranks), others[len(others) // 2]
    share = min(slowest - usual, max(analysis.step, 0.0))
    if share < IDLE_LOADER:
        return None
    evidence = [f"rank {ranks.index(slowest)} waits for data {slowest:.0%} of its time, the others {usual:.0%}"]
    analysis.step -= share
    return Found(share, 0.8, evidence)


CAUSE = Cause(
    Entry(
        code="straggling_rank",
        verb="diagnose",
        title="one rank waits for data, and all other ranks wait for that rank",
        means="Ranks synchronize in every step, so all ranks run at the speed of the slowest.",
        recognised="Compares the ranks' shares of waiting, and checks for a rank whose batches take at least 50 % "
        "longer. The finding is never certain, as the waits of the other ranks are part of their steps.",
        to_do="Distribute the work evenly, and compare that rank's machine and share of the samples with the others'.",
        abstains="Fewer than two ranks were observed, or their batches take equally long to produce.",
        example="rank 1 waits for data 60 % of its time, the others 2 %.",
    ),
    rules=(Rule(50, _evaluate),),
    fix=Fix(
        "Give every rank the same work: compare that rank's storage, CPUs and share of the samples with the others'."
    ),
    gain=gains.of_share,
    signals=(signals.WORKERS,),
)
