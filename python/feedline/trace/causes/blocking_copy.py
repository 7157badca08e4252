# SPDX-License-Identifier: Apache-2.0
"""Batches are page-locked, but the host waits for each copy."""

from __future__ import annotations

from ...findings import Entry
from ..intervals import join
from ..rules import Analysis, Cause, copies_from, copy_line, waits_for_pinned


def _evaluate(analysis: Analysis) -> None:
    device, waited = analysis.device, waits_for_pinned(analysis.waits)
    assert device is not None
    pinned = copies_from(device, "Pinned")
    if pinned is None or not any(waited):
        return
    analysis.findings.add(
        "blocking_copy",
        join(analysis.waits.idle_after(device, waited), device.exposed("HtoD", "Pinned")),
        0.9,
        [copy_line(pinned), f"the host waited for {sum(waited)} of the copies: .to() without non_blocking=True"],
        ".to(device, non_blocking=True), under torch.cuda.stream(...) with a separate stream, one batch ahead",
        gained=(0.5, 1.0),
    )


CAUSE = Cause(
    Entry(
        code="blocking_copy",
        verb="trace",
        title="the host waits for copies to the GPU from page-locked memory",
        means="The copy could run in the background, but the call waits until the copy is complete, and the GPU is "
        "idle until the host has queued more work.",
        recognised="Measures waits of the host for copies from page-locked memory, and the GPU's idle time after them.",
        to_do="Use non-blocking copies on a separate stream, one batch ahead.",
        abstains="The trace has no GPU events.",
        example="the host waited for 8 of the copies: .to() without non_blocking=True.",
    ),
    priority=60,
    evaluate=_evaluate,
    of_device=True,
)
