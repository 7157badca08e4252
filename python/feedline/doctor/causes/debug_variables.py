# SPDX-License-Identifier: Apache-2.0
"""A debugging variable slows everything down."""

from __future__ import annotations

from collections.abc import Iterator

from ..rules import MACHINE, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    off = ("", "0")
    for name in ("CUDA_LAUNCH_BLOCKING", "PYTHONDEVMODE", "PYTHONTRACEMALLOC", "MALLOC_CHECK_"):
        value = case.machine.environment.get(name, "")
        if value not in off:
            yield Found("warning", (f"{name}={value}",))
    if "debug" in case.machine.environment.get("PYTHONMALLOC", ""):
        yield Found("warning", (f"PYTHONMALLOC={case.machine.environment['PYTHONMALLOC']}",))
    if case.machine.environment.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL":
        yield Found("warning", ("TORCH_DISTRIBUTED_DEBUG=DETAIL",))


CAUSE = Cause(
    page(
        "debug_variables",
        "a debugging variable slows everything down",
        means="CUDA_LAUNCH_BLOCKING=1 makes the loop wait for each kernel, so nothing overlaps; the "
        "others check each allocation or record its origin.",
        recognised="CUDA_LAUNCH_BLOCKING, PYTHONMALLOC=debug, PYTHONDEVMODE, PYTHONTRACEMALLOC, MALLOC_CHECK_ or "
        "TORCH_DISTRIBUTED_DEBUG=DETAIL in the environment.",
        to_do="unset it for runs in which speed matters.",
        example="CUDA_LAUNCH_BLOCKING=1.",
    ),
    turn=MACHINE + 90,
    judge=_judge,
)
