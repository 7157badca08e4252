# SPDX-License-Identifier: Apache-2.0
"""Batches are copied to the device from pageable memory."""

from __future__ import annotations

from ...findings import Entry
from ..judging import Case, Cause, copies_from, copy_line


def _judges(case: Case) -> None:
    assert case.device is not None
    pageable = copies_from(case.device, "Pageable")
    if pageable is None:
        return
    case.findings.add(
        "unpinned_copy",
        case.device.exposed("HtoD", "Pageable"),
        0.95,
        [copy_line(pageable), "copies from pageable memory hold the host and overlap with no kernel behind"],
        "pin_memory=True and .to(device, non_blocking=True) together",
        gained=(0.4, 1.0),
    )


CAUSE = Cause(
    Entry(
        code="unpinned_copy",
        verb="trace",
        title="copies to the GPU from pageable memory",
        means="The driver copies pageable memory to a buffer of its own first. That holds the host, and nothing that "
        "is queued behind it on the same stream runs meanwhile.",
        recognised="The time of copies from pageable memory in which no kernel ran.",
        to_do="Page-lock the batches and ask for copies that do not wait, both together.",
        abstains="The trace holds no events of a GPU.",
        example="12 x Memcpy HtoD (Pageable -> Device): 115.6 MB in 14.20 ms (8.1 GB/s), 0% of it beside kernels.",
    ),
    turn=50,
    judges=_judges,
    of_device=True,
)
