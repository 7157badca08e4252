# SPDX-License-Identifier: Apache-2.0
"""A GPU's memory is nearly full."""

from ...findings import Entry, Threshold
from ..rules import GPUS, Alarm, Occurrences, Seen, free_share

GPU_MEMORY_LEFT = Threshold(
    0.05, "minimum fraction of a GPU's memory that should be free, as a larger batch may need it"
)


def _evaluate(seen: Seen) -> Occurrences:
    for at, gpu in seen.own_gpus():
        free = free_share(gpu)
        if free is not None and free < GPU_MEMORY_LEFT:
            yield at, True, f"GPU {gpu.index} has only {free:.0%} of its memory left: use smaller batches"


ALARM = Alarm(
    Entry(
        code="gpu_memory",
        verb="top",
        title="a GPU's memory is nearly full",
        means="The next allocation may fail and end the run.",
        recognised="Less than 5 % of a GPU's memory is free.",
        to_do="Smaller batches.",
        abstains="GPUs used only by other processes raise no alarm, if the driver lists processes.",
        example="GPU 0 has only 2% of its memory left: use smaller batches",
    ),
    priority=GPUS,
    evaluate=_evaluate,
)
