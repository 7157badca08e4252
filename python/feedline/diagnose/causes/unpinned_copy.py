# SPDX-License-Identifier: Apache-2.0
"""Batches are copied to the device from pageable memory, and the device's stream waits for it."""

from __future__ import annotations

from typing import Any

from feedline.diagnose.judging import copies
from feedline.diagnose.judging.cause import Cause, Rule
from feedline.diagnose.judging.copies import FASTEST, FEWEST_TIMED, LAUNCH, SLOWEST
from feedline.diagnose.judging.fixes import Fix
from feedline.diagnose.judging.shares import IDLE_LOADER, NAMED
from feedline.findings import Entry, Threshold
from feedline.watching.experiments import LOCKED
from feedline.watching.summary.figures import Summary

__all__ = ["CAUSE", "FASTEST", "FEWEST_TIMED", "IDLE_LOADER", "LAUNCH", "LEAST", "NAMED", "SLOWEST"]

LEAST = Threshold(0.4, "of the copies' time, that page-locking gives back at least where it was not measured")
_KIND = copies.Kind(pinned=False, asked=None, confidence=0.92, least=LEAST, words="pageable memory", change=LOCKED)
_STOCK = "pin_memory=True of the loader and .to(device, non_blocking=True) together."


def _settings(summary: Summary) -> dict[str, Any] | None:
    return None if summary.loader.get("pin_memory") else {"pin_memory": True}


CAUSE = Cause(
    Entry(
        code="unpinned_copy",
        verb="diagnose",
        title="copies to the GPU from pageable memory",
        means="The driver copies pageable memory to a buffer of its own before the device can fetch it. The copy takes "
        "longer, and nothing that was queued behind it on the same stream runs meanwhile.",
        recognised="`.to`, `.cuda` and `copy_` of some of the steps, and their time on the device's stream, between "
        "two timed events. Time inside the call is not counted: it may be waiting for kernels that are needed anyway.",
        to_do="Page-lock the batches and ask for copies that do not wait, both together: one without the other gains "
        "little. Without workers, next() itself page-locks, which is counted against the gain. Page-locked bytes "
        "cross the link too, so that no more is promised than it leaves.",
        abstains="No step was watched, as with torch.compile; the kind of device has no timed events in torch.",
        example="2 copies of 20 MB in all per step, from pageable memory, hold the device's stream for 6.00 ms of a "
        "step of 10: unpinned_copy, 60 %.",
    ),
    rules=(Rule(10, _KIND.books),),
    # batches of Feedline's threads are in pageable memory
    fix=Fix(
        _STOCK,
        own=".pin_memory() of a batch's tensors in a thread of your own, then .to(device, non_blocking=True).",
        lowered=_STOCK,
    ),
    settings=_settings,
    unseen=_KIND.unseen,
)
