# SPDX-License-Identifier: Apache-2.0
"""An environment variable hides the GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import BROKEN, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    names = analysis.machine.environment.get("CUDA_VISIBLE_DEVICES")
    count = len(analysis.machine.gpus)
    if names is None or not count:
        return
    first = names.split(",")[0].strip()
    if first == "" or (first.lstrip("-").isdecimal() and not 0 <= int(first) < count):
        yield Found("critical", (f"CUDA_VISIBLE_DEVICES is {names!r} and hides {count} GPU{'s' if count > 1 else ''}",))


CAUSE = Cause(
    page(
        "gpu_hidden",
        "an environment variable hides the GPUs",
        means="A program sees only the GPUs listed in CUDA_VISIBLE_DEVICES; an empty value, -1 or an invalid "
        "number hides all GPUs that follow.",
        recognised="The machine has GPUs, but the variable lists none of them.",
        to_do="Unset CUDA_VISIBLE_DEVICES, or list the GPUs: CUDA_VISIBLE_DEVICES=0,1.",
        example="CUDA_VISIBLE_DEVICES is '' and hides 4 GPUs.",
    ),
    priority=BROKEN + 30,
    evaluate=_evaluate,
)
