# SPDX-License-Identifier: Apache-2.0
"""Copies are asked for as they should be, and no kernel runs beside them."""

from __future__ import annotations

from ...findings import Entry
from ..judging import Case, Cause, copies_from, copy_line, waits_for_pinned


def _judges(case: Case) -> None:
    assert case.device is not None
    pinned = copies_from(case.device, "Pinned")
    if pinned is None or any(waits_for_pinned(case.waits)):
        return  # none, or blocking_copy
    case.findings.add(
        "host_to_device",
        case.device.exposed("HtoD", "Pinned"),
        0.9,
        [copy_line(pinned), "no kernel ran beside the copies: they and the kernels share a stream"],
        "copy the next batch on a stream of its own, torch.cuda.Stream(), or send uint8 and convert on the GPU",
        gained=(0.7, 1.0),
    )


CAUSE = Cause(
    Entry(
        code="host_to_device",
        verb="trace",
        title="copies as they should be asked for, beside which no kernel runs",
        means="Page-locked and non-blocking, the copies still stand in line with the kernels of their stream.",
        recognised="The time of copies from page-locked memory in which no kernel ran, where nobody waited for them.",
        to_do="Copy the next batch on a second stream while this one computes, or send fewer bytes.",
        abstains="The trace holds no events of a GPU.",
        example="no kernel ran beside the copies: they and the kernels share a stream.",
    ),
    turn=40,
    judges=_judges,
    of_device=True,
)
