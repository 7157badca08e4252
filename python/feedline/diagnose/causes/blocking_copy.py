# SPDX-License-Identifier: Apache-2.0
"""Batches are page-locked, but the loop still waits for each copy."""

from __future__ import annotations

from feedline.diagnose.rules import copies
from feedline.diagnose.rules.cause import Cause, Rule
from feedline.diagnose.rules.copies import FEWEST_TIMED, LAUNCH, SLOWEST
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import IDLE_LOADER, NAMED
from feedline.findings import Entry, Threshold
from feedline.profiler.experiments import ASKED

__all__ = ["CAUSE", "FEWEST_TIMED", "IDLE_LOADER", "LAUNCH", "LEAST", "NAMED", "SLOWEST", "SURE"]

LEAST = Threshold(0.5, "minimum fraction of the copy time that non-blocking copies save, if not measured")
SURE = Threshold(0.5, "minimum fraction of the measured saving that non-blocking copies achieve")
_KIND = copies.Kind(
    pinned=True,
    asked=False,
    confidence=0.92,
    least=LEAST,
    words="page-locked memory without non_blocking=True",
    change=ASKED,
    sure=SURE,
)

CAUSE = Cause(
    Entry(
        code="blocking_copy",
        verb="diagnose",
        title="copies to the GPU from page-locked memory, without `non_blocking=True`",
        means="The device could fetch the batch while the host continues, but the call blocks until the copy "
        "is complete.",
        recognised="Measures the time on the stream of copies from page-locked memory without non_blocking=True.",
        to_do="Use non-blocking copies on a separate stream, one batch ahead. The predicted gain is limited by the "
        "copies themselves, since a loop cannot be faster than its transfers.",
        abstains="The steps were not watched, as with torch.compile, or torch has no timed events for this device "
        "type.",
        example="2 copies (20 MB in total) per step, from page-locked memory without non_blocking=True, occupy the "
        "device's stream for 6.00 ms of a 10 ms step: blocking_copy, 60 %.",
    ),
    rules=(Rule(20, _KIND.evaluate),),
    fix=Fix(".to(device, non_blocking=True) under torch.cuda.stream(...), on a separate stream one batch ahead."),
    unseen=_KIND.unseen,
)
