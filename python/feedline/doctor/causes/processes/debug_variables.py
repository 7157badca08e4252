# SPDX-License-Identifier: Apache-2.0
"""A debugging variable slows everything down."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import MACHINE, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    off = ("", "0")
    for name in ("CUDA_LAUNCH_BLOCKING", "PYTHONDEVMODE", "PYTHONTRACEMALLOC", "MALLOC_CHECK_"):
        value = analysis.machine.environment.get(name, "")
        if value not in off:
            yield Found("warning", (f"{name}={value}",))
    if "debug" in analysis.machine.environment.get("PYTHONMALLOC", ""):
        yield Found("warning", (f"PYTHONMALLOC={analysis.machine.environment['PYTHONMALLOC']}",))
    if analysis.machine.environment.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL":
        yield Found("warning", ("TORCH_DISTRIBUTED_DEBUG=DETAIL",))


CAUSE = Cause(
    page(
        "debug_variables",
        "a debugging variable slows everything down",
        means="CUDA_LAUNCH_BLOCKING=1 makes the loop wait for each kernel, so nothing overlaps; the "
        "other variables check each allocation or record its origin.",
        recognised="The environment contains CUDA_LAUNCH_BLOCKING, PYTHONMALLOC=debug, PYTHONDEVMODE, "
        "PYTHONTRACEMALLOC, MALLOC_CHECK_ or TORCH_DISTRIBUTED_DEBUG=DETAIL.",
        to_do="Unset the variable for runs in which speed matters.",
        example="CUDA_LAUNCH_BLOCKING=1.",
    ),
    priority=MACHINE + 90,
    evaluate=_evaluate,
)
