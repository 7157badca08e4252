# SPDX-License-Identifier: Apache-2.0
"""Batches are page-locked, and the loop waits for each copy all the same."""

from __future__ import annotations

from feedline.diagnose.judging import copies
from feedline.diagnose.judging.cause import Cause, Rule
from feedline.diagnose.judging.copies import FEWEST_TIMED, LAUNCH, SLOWEST
from feedline.diagnose.judging.fixes import Fix
from feedline.diagnose.judging.shares import IDLE_LOADER, NAMED
from feedline.findings import Entry, Threshold
from feedline.watching.experiments import ASKED

__all__ = ["CAUSE", "FEWEST_TIMED", "IDLE_LOADER", "LAUNCH", "LEAST", "NAMED", "SLOWEST", "SURE"]

LEAST = Threshold(0.5, "of the copies' time, that not waiting gives back at least where it was not measured")
SURE = Threshold(0.5, "of what the experiment shows: so much not waiting gives back at least")
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
        means="The batch could be fetched by the device while the host goes on, but the call waits until it is there.",
        recognised="Copies from page-locked memory that were not asked to be non-blocking, by their time on the "
        "device's stream.",
        to_do="Ask for copies that do not wait, on a stream of their own, one batch ahead. No more is promised than "
        "the copies themselves leave: a loop goes no faster than its bytes cross the link.",
        abstains="No step was watched, as with torch.compile; the kind of device has no timed events in torch.",
        example="2 copies of 20 MB in all per step, from page-locked memory without non_blocking=True, hold the "
        "device's stream for 6.00 ms of a step of 10: blocking_copy, 60 %.",
    ),
    rules=(Rule(20, _KIND.books),),
    fix=Fix(".to(device, non_blocking=True), under torch.cuda.stream(...) with a stream of its own one batch ahead."),
    unseen=_KIND.unseen,
)
