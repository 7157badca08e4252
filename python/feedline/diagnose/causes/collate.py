# SPDX-License-Identifier: Apache-2.0
"""Collating samples into batches takes too long."""

from __future__ import annotations

from feedline.diagnose.rules import contradictions, gains, production, signals
from feedline.diagnose.rules.cause import Cause, Rule
from feedline.diagnose.rules.certainty import CPU_OF_PAGING
from feedline.diagnose.rules.fixes import Fix
from feedline.findings import Entry

CAUSE = Cause(
    Entry(
        code="collate",
        verb="diagnose",
        title="collating samples into batches takes too long",
        means="`collate_fn` combines samples into one batch, in the workers if there are any. In Python this is a loop "
        "over objects; for arrays, all bytes are copied into new shared memory.",
        recognised="Measures the time of `collate_fn` while the loop waits.",
        to_do="Return tensors or arrays of equal shape, which can be stacked in one step.",
        abstains="The stages of a batch were not observed.",
        example="a batch takes 80.0 ms to produce, 79.0 ms of it CPU; by stage: collate 100 %.",
    ),
    rules=(Rule(200, lambda analysis: production.found(analysis, 0.92, "collate")),),
    fix=Fix(
        "Collate less in Python: return tensors or arrays of equal shape, and stack them once.",
        own="Copy less: use a smaller dtype or shorter rows, and batch samples of similar length together (buckets=).",
        lowered="Copy less: use a smaller dtype or shorter rows.",
    ),
    gain=gains.stages("collate"),
    signals=(signals.WORKERS, signals.STAGES),
    contradicted={
        "the CPUs were idle": contradictions.idle_cpus,
        "other programs used the CPUs": contradictions.other_programs,
    },
    paging_instead=CPU_OF_PAGING,
)
