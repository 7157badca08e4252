# SPDX-License-Identifier: Apache-2.0
"""Of the wait for the loader, what Feedline's threads were busy with decoding."""

from __future__ import annotations

from ...findings import Entry
from ..judging import Cause

CAUSE = Cause(
    Entry(
        code="cpu_decode",
        verb="trace",
        title="the loop waits for its loader, whose threads are busy with decoding",
        means="The wait in `next()` is divided by what Feedline's threads were busy with meanwhile.",
        recognised="Feedline's own stages, where they were merged into the trace, and the time inside `next()`.",
        to_do="More threads if cores are free; else do less of it in each epoch.",
        abstains="The trace holds none of Feedline's stages: torch.profiler records the main process alone.",
        example="Feedline's threads spent 76% of their busy time in the stage decode.",
    ),
    turn=20,
    judges=lambda case: case.add_stage("cpu_decode", "decode"),
)
