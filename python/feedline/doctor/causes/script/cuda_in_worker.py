# SPDX-License-Identifier: Apache-2.0
"""A worker uses the GPU."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page
from ...start_method import method_of


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    script = analysis.script
    if script is None or not script.may_have_workers:
        return
    for location in script.cuda_in_workers:
        forks = method_of(analysis) == "fork" and bool(script.most_workers)
        where = f"{location.at}: {location.what} in code that workers run"
        yield Found("critical" if forks else "warning", (where,), about=location.about)


CAUSE = Cause(
    page(
        "cuda_in_worker",
        "a worker uses the GPU",
        means="After fork, CUDA cannot be used in a worker, which raises RuntimeError: Cannot re-initialize CUDA in "
        "forked subprocess. With spawn, each worker uses hundreds of megabytes of GPU memory.",
        recognised="Code that workers run contains .cuda(), .to('cuda') or device='cuda'.",
        to_do="Return CPU tensors from the dataset, and move the batch in the loop: batch.to(device, "
        "non_blocking=True).",
        example="line 17: .cuda() in code that workers run.",
    ),
    priority=SCRIPT + 30,
    evaluate=_evaluate,
)
