# SPDX-License-Identifier: Apache-2.0
"""Copies are page-locked and non-blocking, but do not overlap with kernels."""

from __future__ import annotations

from ...findings import Entry
from ..rules import Analysis, Cause, copies_from, copy_line, waits_for_pinned


def _evaluate(analysis: Analysis) -> None:
    assert analysis.device is not None
    pinned = copies_from(analysis.device, "Pinned")
    if pinned is None or any(waits_for_pinned(analysis.waits)):
        return  # no copies, or reported as blocking_copy
    analysis.findings.add(
        "host_to_device",
        analysis.device.exposed("HtoD", "Pinned"),
        0.9,
        [copy_line(pinned), "no kernel overlapped with the copies, which share a stream with the kernels"],
        "copy the next batch on a separate stream, torch.cuda.Stream(), or send uint8 and convert on the GPU",
        gained=(0.7, 1.0),
    )


CAUSE = Cause(
    Entry(
        code="host_to_device",
        verb="trace",
        title="page-locked, non-blocking copies that do not overlap with kernels",
        means="Page-locked, non-blocking copies are still queued after the kernels of their stream.",
        recognised="Measures the time of copies from page-locked memory without a concurrent kernel or a wait of the "
        "host.",
        to_do="Copy the next batch on a second stream during the step, or send fewer bytes.",
        abstains="The trace has no GPU events.",
        example="no kernel overlapped with the copies, which share a stream with the kernels.",
    ),
    priority=40,
    evaluate=_evaluate,
    of_device=True,
)
