# SPDX-License-Identifier: Apache-2.0
"""A GPU is held below its clock."""

from ...findings import Entry
from ..judging import GPUS, Alarm, Seen, Told


def _judges(seen: Seen) -> Told:
    for at, gpu in seen.own_gpus():
        if gpu.slowed:
            yield at, False, f"GPU {gpu.index} is held below its clock by power or heat"


ALARM = Alarm(
    Entry(
        code="gpu_slowed",
        verb="top",
        title="a GPU is held below its clock",
        means="Its power or its heat is at a limit, so every step takes longer than it could.",
        recognised="The driver says so: a note.",
        to_do="nvidia-smi -q -d PERFORMANCE says which limit it is; look at cooling and at the power limit.",
        abstains="GPUs on which only other processes compute raise none, where the driver tells.",
        example="GPU 0 is held below its clock by power or heat",
    ),
    turn=GPUS + 10,
    judges=_judges,
)
