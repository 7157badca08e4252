# SPDX-License-Identifier: Apache-2.0
"""Joining samples into a batch takes the time."""

from __future__ import annotations

from feedline.diagnose.judging import contradictions, gains, making, signals
from feedline.diagnose.judging.cause import Cause, Rule
from feedline.diagnose.judging.certainty import CPU_OF_PAGING
from feedline.diagnose.judging.fixes import Fix
from feedline.findings import Entry

CAUSE = Cause(
    Entry(
        code="collate",
        verb="diagnose",
        title="joining samples takes the time",
        means="`collate_fn` makes one batch of many samples. In Python that is a loop over objects; of arrays it is a "
        "copy of all bytes into new shared memory.",
        recognised="The time of `collate_fn`, within the time in which batches are late.",
        to_do="Give it less to do: tensors or arrays of equal shape, stacked once.",
        abstains="The stages of a batch were not seen.",
        example="a batch takes 80.0 ms to make, 79.0 ms of it CPU; of it: collate 100 %.",
    ),
    rules=(Rule(200, lambda case: making.found(case, 0.92, "collate")),),
    fix=Fix(
        "Collate less in Python: return equal-shaped tensors or arrays, and stack them once.",
        own="Copy less: a smaller dtype, or shorter rows; samples of like length together (buckets=).",
        lowered="Copy less: a smaller dtype, or shorter rows.",
    ),
    gain=gains.stages("collate"),
    signals=(signals.WORKERS, signals.STAGES),
    contradicted={"the CPUs were idle": contradictions.idle_cpus},
    beside_paging=CPU_OF_PAGING,
)
