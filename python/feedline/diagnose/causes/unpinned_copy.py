# SPDX-License-Identifier: Apache-2.0
"""Batches are copied to the device from pageable memory, and the device's stream waits for them."""

from __future__ import annotations

from typing import Any

from feedline.diagnose.rules import copies
from feedline.diagnose.rules.cause import Cause, Rule
from feedline.diagnose.rules.copies import FASTEST, FEWEST_TIMED, LAUNCH, SLOWEST
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import IDLE_LOADER, NAMED
from feedline.findings import Entry, Threshold
from feedline.profiler.experiments import LOCKED
from feedline.profiler.summary.figures import Summary

__all__ = ["CAUSE", "FASTEST", "FEWEST_TIMED", "IDLE_LOADER", "LAUNCH", "LEAST", "NAMED", "SLOWEST"]

LEAST = Threshold(0.4, "minimum fraction of the copy time that page-locking saves, if not measured")
_KIND = copies.Kind(pinned=False, asked=None, confidence=0.92, least=LEAST, words="pageable memory", change=LOCKED)
_STOCK = "Set pin_memory=True on the loader and also use .to(device, non_blocking=True)."


def _settings(summary: Summary) -> dict[str, Any] | None:
    return None if summary.loader.get("pin_memory") else {"pin_memory": True}


CAUSE = Cause(
    Entry(
        code="unpinned_copy",
        verb="diagnose",
        title="copies to the GPU from pageable memory",
        means="The driver copies pageable memory to a staging buffer before the device can fetch the data. "
        "The copy takes "
        "longer, and later work on the same stream waits.",
        recognised="Measures `.to`, `.cuda` and `copy_` in some of the steps, by their time on the device's stream "
        "between two timed events. Time inside the call is not counted, because the call may wait for the step's "
        "own kernels.",
        to_do="Page-lock the batches and make the copies non-blocking; one without the other gains little. Without "
        "workers, next() itself page-locks batches, and this time is deducted from the gain. Page-locked bytes "
        "must also cross the link, which limits the predicted gain.",
        abstains="The steps were not watched, as with torch.compile, or torch has no timed events for this device "
        "type.",
        example="2 copies (20 MB in total) per step, from pageable memory, occupy the device's stream for 6.00 ms of a "
        "10 ms step: unpinned_copy, 60 %.",
    ),
    rules=(Rule(10, _KIND.evaluate),),
    # batches of Feedline's threads are in pageable memory
    fix=Fix(
        _STOCK,
        own="Call .pin_memory() on a batch's tensors in a separate thread, then .to(device, non_blocking=True).",
        lowered=_STOCK,
    ),
    settings=_settings,
    unseen=_KIND.unseen,
)
