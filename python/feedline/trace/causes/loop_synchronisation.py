# SPDX-License-Identifier: Apache-2.0
"""The step waits for the GPU, which is then idle until the host launches more work."""

from __future__ import annotations

import numpy as np

from ...findings import Entry
from .. import synchronisation
from ..intervals import covered_within
from ..rules import Analysis, Cause

_MOST_PLACES = 3


def _evaluate(analysis: Analysis) -> None:
    device, waits, steps = analysis.device, analysis.waits, analysis.steps
    assert device is not None
    of_loop = [copy is None or not copy.startswith("Memcpy HtoD") for copy in waits.copy]
    inside_loader = covered_within(steps.loader, np.stack((waits.start, waits.start + 1), axis=1)) > 0
    which = [mine and not loader for mine, loader in zip(of_loop, inside_loader.tolist(), strict=True)]
    if not any(which):
        if not len(analysis.trace["runtime"]):
            analysis.findings.abstain("CUDA runtime calls (ProfilerActivity.CUDA)", "loop_synchronisation")
        return
    analysis.findings.add(
        "loop_synchronisation",
        waits.idle_after(device, which),
        0.85,
        _places(analysis),
        "keep values on the GPU: use .detach() instead of .item(), read values every hundredth step, and avoid "
        "boolean masks",
        gained=(0.3, 1.0),
    )


def _places(analysis: Analysis) -> list[str]:
    assert analysis.device is not None
    table = synchronisation.table(analysis.waits, analysis.device, analysis.steps)
    rows = [row for row in table if not (row["copy"] or "").startswith("Memcpy HtoD")]
    places = [
        f"{row['operator']}{' in ' + row['place'] if row['place'] else ''}: {row['per_step']:.1f} per step, "
        f"GPU idle {row['gpu_idle_after_ms']:.2f} ms afterwards"
        for row in rows[:_MOST_PLACES]
    ]
    if not any(row["place"] for row in rows):
        places.append("record with with_stack=True to see which line waits")
    return places


CAUSE = Cause(
    Entry(
        code="loop_synchronisation",
        verb="trace",
        title="the step waits for the GPU, which is then idle until the host launches more work",
        means="`.item()`, `.nonzero()` and similar calls need a value from the GPU. The host waits for the value, "
        "and then the "
        "GPU waits for the host.",
        recognised="Measures waits of the host outside the loader, except for copies to the device, by the GPU's "
        "idle time directly after each.",
        to_do="Keep values on the GPU, and read them rarely.",
        abstains="The trace has no CUDA runtime calls.",
        example="aten::item: 2.0 per step, GPU idle 1.10 ms afterwards.",
    ),
    priority=70,
    evaluate=_evaluate,
    of_device=True,
)
