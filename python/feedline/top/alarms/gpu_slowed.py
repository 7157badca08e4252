# SPDX-License-Identifier: Apache-2.0
"""A GPU is throttled."""

from ...findings import Entry
from ..rules import GPUS, Alarm, Occurrences, Seen


def _evaluate(seen: Seen) -> Occurrences:
    for at, gpu in seen.own_gpus():
        if gpu.slowed:
            yield at, False, f"GPU {gpu.index} is throttled by power or heat"


ALARM = Alarm(
    Entry(
        code="gpu_slowed",
        verb="top",
        title="a GPU is throttled",
        means="The GPU has reached its power or temperature limit, so every step takes longer.",
        recognised="The driver reports throttling (a note).",
        to_do="`nvidia-smi -q -d PERFORMANCE` shows which limit it is; check the cooling and the power limit.",
        abstains="GPUs used only by other processes raise no alarm, if the driver lists processes.",
        example="GPU 0 is throttled by power or heat",
    ),
    priority=GPUS + 10,
    evaluate=_evaluate,
)
