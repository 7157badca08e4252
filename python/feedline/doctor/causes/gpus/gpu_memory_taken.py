# SPDX-License-Identifier: Apache-2.0
"""Other programs use a GPU's memory."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, gb, page

MOST = Threshold(0.5, "share of a GPU's memory that other programs use; a desktop uses less")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for gpu in analysis.machine.gpus:
        if gpu.memory_bytes and gpu.memory_used_bytes is not None and gpu.memory_used_bytes > MOST * gpu.memory_bytes:
            free = gpu.memory_bytes - gpu.memory_used_bytes
            words = f"GPU {gpu.index} has {gb(free)} of {gb(gpu.memory_bytes)} free"
            yield Found("warning", (words,), about={"gpu": gpu.index})


CAUSE = Cause(
    page(
        "gpu_memory_taken",
        "other programs use a GPU's memory",
        means="A run that fits on an empty GPU fails with CUDA out of memory if other programs use the GPU, often "
        "only at its largest batch.",
        recognised="Most of a GPU's memory is used before the run has started.",
        to_do="nvidia-smi lists the processes; end leftover processes, or use another GPU: CUDA_VISIBLE_DEVICES.",
        example="GPU 0 has 2.1 GB of 85.0 GB free.",
    ),
    priority=MACHINE + 20,
    evaluate=_evaluate,
)
