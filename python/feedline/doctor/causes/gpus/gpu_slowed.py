# SPDX-License-Identifier: Apache-2.0
"""A GPU runs at reduced clocks."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import MACHINE, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for gpu in analysis.machine.gpus:
        if gpu.slowed:
            at = f", at {gpu.temperature_c} C" if gpu.temperature_c is not None else ""
            yield Found("warning", (f"GPU {gpu.index} is throttled by power or heat{at}",), about={"gpu": gpu.index})


CAUSE = Cause(
    page(
        "gpu_slowed",
        "a GPU runs at reduced clocks",
        means="Heat or a power limit reduces the GPU's clocks: every step takes longer, regardless of the loader.",
        recognised="The driver reports heat or power as the reason for the current clocks.",
        to_do="Check the GPU's cooling and power limit: nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE.",
        example="GPU 2 is throttled by power or heat, at 91 C.",
    ),
    priority=MACHINE + 10,
    evaluate=_evaluate,
)
