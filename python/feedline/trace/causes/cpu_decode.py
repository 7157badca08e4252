# SPDX-License-Identifier: Apache-2.0
"""The loop waits for its loader, whose threads are decoding."""

from __future__ import annotations

from ...findings import Entry
from ..rules import Cause

CAUSE = Cause(
    Entry(
        code="cpu_decode",
        verb="trace",
        title="the loop waits for its loader, whose threads are decoding",
        means="The wait in `next()` is divided by the busy time of Feedline's threads in each stage.",
        recognised="Uses Feedline's stages, if they were merged into the trace, and the time inside `next()`.",
        to_do="Use more threads if cores are free; otherwise do less decoding per epoch.",
        abstains="The trace does not contain Feedline's stages, as torch.profiler records only the main process.",
        example="Feedline's threads spent 76% of their busy time in the stage decode.",
    ),
    priority=20,
    evaluate=lambda analysis: analysis.add_stage("cpu_decode", "decode"),
)
