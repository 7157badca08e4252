# SPDX-License-Identifier: Apache-2.0
"""The step is limited by its own computation, so a faster loader would not help."""

from __future__ import annotations

from ...findings import Entry, Threshold
from ...findings.finding import NOTE
from ..intervals import EMPTY, total
from ..rules import Analysis, Cause

BUSY = Threshold(0.9, "share of the time with a busy GPU above which a faster loader is not needed")


def _evaluate(analysis: Analysis) -> None:
    device, share, has_loader = analysis.device, analysis.loader_share, len(analysis.steps.loader) > 0
    if device is not None:
        busy = total(device.busy) / max(1, device.window[1] - device.window[0])
        evidence = [f"the GPU is busy {busy:.0%} of the time"]
        if busy < BUSY:
            return
    elif has_loader and share < NOTE:
        busy, evidence = 1.0 - share, []
    else:
        return
    if has_loader:
        evidence.append(f"the loop waits {share:.1%} of its time for the loader")
    explained = sum(finding.share for finding in analysis.findings.verdicts)
    analysis.findings.add(
        "compute_bound",
        EMPTY,
        0.9,
        evidence,
        "the loader is not the bottleneck; the time is spent on the model, its precision and its operators",
        gained=(0.0, 0.0),
        per_step=analysis.durations * max(0.0, busy - explained),
    )


CAUSE = Cause(
    Entry(
        code="compute_bound",
        verb="trace",
        title="the step is limited by its own computation; the loader needs no change",
        means="The GPU is busy nearly all of the time, or, without a GPU, the loop hardly waits for its loader.",
        recognised="Measures the union of kernels, copies and memsets within the steps, minus the time that other "
        "causes explain.",
        to_do="Leave the loader unchanged. The time is spent on the model, its precision and its operators.",
        example="the GPU is busy 97% of the time.",
    ),
    priority=90,
    evaluate=_evaluate,
)
