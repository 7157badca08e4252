# SPDX-License-Identifier: Apache-2.0
"""Batches are copied to the device from pageable memory."""

from __future__ import annotations

from ...findings import Entry
from ..rules import Analysis, Cause, copies_from, copy_line


def _evaluate(analysis: Analysis) -> None:
    assert analysis.device is not None
    pageable = copies_from(analysis.device, "Pageable")
    if pageable is None:
        return
    analysis.findings.add(
        "unpinned_copy",
        analysis.device.exposed("HtoD", "Pageable"),
        0.95,
        [copy_line(pageable), "copies from pageable memory block the host and do not overlap with kernels"],
        "pin_memory=True and .to(device, non_blocking=True) together",
        gained=(0.4, 1.0),
    )


CAUSE = Cause(
    Entry(
        code="unpinned_copy",
        verb="trace",
        title="copies to the GPU from pageable memory",
        means="The driver first copies pageable memory to its own buffer. This copy blocks the host, and later work "
        "on the same stream waits.",
        recognised="Measures the time of copies from pageable memory during which no kernel ran.",
        to_do="Page-lock the batches and use non-blocking copies; both are needed.",
        abstains="The trace has no GPU events.",
        example="12 x Memcpy HtoD (Pageable -> Device): 116 MB in 14 ms (8.1 GB/s), 0% of it overlapped with kernels.",
    ),
    priority=50,
    evaluate=_evaluate,
    of_device=True,
)
