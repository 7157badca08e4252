# SPDX-License-Identifier: Apache-2.0
"""A batch does not fit in the GPU's free memory."""

from __future__ import annotations

from collections.abc import Iterator

from ....machine.planned_load import gpu_bytes_of
from ...rules import LOAD, Analysis, Cause, Found, gb, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    if analysis.load is None or not analysis.load.batch_bytes:
        return
    for gpu in analysis.machine.gpus:
        if gpu.memory_bytes and gpu.memory_used_bytes is not None:
            free = gpu.memory_bytes - gpu.memory_used_bytes
            if gpu_bytes_of(analysis.load) > free:
                batches = f"two batches of {gb(analysis.load.batch_bytes)}"
                yield Found(
                    "critical", (f"{batches}, but GPU {gpu.index} has {gb(free)} free",), about={"gpu": gpu.index}
                )
                return


CAUSE = Cause(
    page(
        "gpu_memory_needed",
        "a batch does not fit in the GPU's free memory",
        means="If copies overlap the step, two batches are on the GPU at a time, in addition to the model, its "
        "gradients and activations. GPU memory limits the batch size: start with a medium size and increase it up to "
        "the limit, with drop_last=True if shapes must be the same.",
        recognised="Two batches are larger than the free memory of the GPU with the least free memory.",
        to_do="Use smaller batches; end other programs on the GPU; decode to uint8 and convert on the GPU.",
        example="two batches of 6.0 GB, but GPU 0 has 8.0 GB free.",
    ),
    priority=LOAD + 40,
    evaluate=_evaluate,
)
