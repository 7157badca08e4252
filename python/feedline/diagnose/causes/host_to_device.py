# SPDX-License-Identifier: Apache-2.0
"""Copies are asked for as they should be, and run on the stream that computes."""

from __future__ import annotations

from feedline.diagnose.judging import copies
from feedline.diagnose.judging.cause import Cause, Rule
from feedline.diagnose.judging.copies import FEWEST_TIMED, LAUNCH, SLOWEST
from feedline.diagnose.judging.fixes import Fix
from feedline.diagnose.judging.shares import IDLE_LOADER, NAMED, UNCERTAIN
from feedline.findings import Entry, Threshold

__all__ = ["CAUSE", "FEWEST_TIMED", "IDLE_LOADER", "LAUNCH", "LEAST", "NAMED", "SLOWEST", "UNCERTAIN"]

LEAST = Threshold(0.7, "of the copies' time, that a stream of their own gives back at least")
_KIND = copies.Kind(
    pinned=True,
    asked=True,
    confidence=UNCERTAIN,
    least=LEAST,
    words="page-locked memory, on the stream that computes",
)

CAUSE = Cause(
    Entry(
        code="host_to_device",
        verb="diagnose",
        title="copies as they should be asked for, on the stream that computes",
        means="Page-locked and non-blocking, the copies still stand in line with the kernels of their stream: the GPU "
        "copies and then computes, where it could do both at once.",
        recognised="Their time on the device's default stream, by the device's own events. Never certain: whether "
        "kernels of other streams ran beside them is not seen.",
        to_do="Copy the next batch on a second stream while this one computes, or send fewer bytes. The gain is that "
        "of the stream, and no more than copies leave: a loop goes no faster than its bytes cross the link.",
        abstains="No step was watched, as with torch.compile; the kind of device has no timed events in torch. A copy "
        "on another stream than the default one is taken to run beside the kernels, and is no cause.",
        example="2 copies of 20 MB in all per step, from page-locked memory, on the stream that computes, hold the "
        "device's stream for 6.00 ms of a step of 10: host_to_device, 60 %.",
    ),
    rules=(Rule(30, _KIND.books),),
    fix=Fix(
        "Copy the next batch on a stream of its own, torch.cuda.Stream(), while this one computes; or send uint8 and "
        "convert on the GPU."
    ),
    unseen=_KIND.unseen,
)
