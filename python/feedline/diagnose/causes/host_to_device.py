# SPDX-License-Identifier: Apache-2.0
"""Copies are page-locked and non-blocking, but run on the compute stream."""

from __future__ import annotations

from feedline.diagnose.rules import copies
from feedline.diagnose.rules.cause import Cause, Rule
from feedline.diagnose.rules.copies import FEWEST_TIMED, LAUNCH, SLOWEST
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import IDLE_LOADER, NAMED, UNCERTAIN
from feedline.findings import Entry, Threshold

__all__ = ["CAUSE", "FEWEST_TIMED", "IDLE_LOADER", "LAUNCH", "LEAST", "NAMED", "SLOWEST", "UNCERTAIN"]

LEAST = Threshold(0.7, "minimum fraction of the copy time that a separate stream saves")
_KIND = copies.Kind(
    pinned=True,
    asked=True,
    confidence=UNCERTAIN,
    least=LEAST,
    words="page-locked memory on the compute stream",
)

CAUSE = Cause(
    Entry(
        code="host_to_device",
        verb="diagnose",
        title="page-locked, non-blocking copies on the compute stream",
        means="Even page-locked, non-blocking copies are queued with the kernels of their stream: the GPU first "
        "copies and then computes, although it could do both at the same time.",
        recognised="Measures the time of copies on the device's default stream with device events. The finding is "
        "never certain, as kernels that run concurrently on other streams are not observed.",
        to_do="Copy the next batch on a second stream during the step, or send fewer bytes. The predicted gain "
        "is limited by the copies themselves, since a loop cannot be faster than its transfers.",
        abstains="The steps were not watched, as with torch.compile, or torch has no timed events for this device "
        "type. "
        "Copies on other streams are assumed to overlap with the kernels and are not counted.",
        example="2 copies (20 MB in total) per step, from page-locked memory on the compute stream, occupy the "
        "device's stream for 6.00 ms of a 10 ms step: host_to_device, 60 %.",
    ),
    rules=(Rule(30, _KIND.evaluate),),
    fix=Fix(
        "Copy the next batch on a separate stream, torch.cuda.Stream(), during the step; or send uint8 and convert "
        "it on the GPU."
    ),
    unseen=_KIND.unseen,
)
