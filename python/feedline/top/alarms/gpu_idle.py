# SPDX-License-Identifier: Apache-2.0
"""A GPU with memory to spare waits for data."""

from ...findings import Entry, Threshold
from ..judging import GPUS, WAIT_NOTE, Alarm, Moment, Seen, Told, free_share
from .gpu_sawtooth import SAW_TURNS, turns

GPU_IDLE = Threshold(0.30, "utilisation under which a GPU with memory to spare is not being fed")
GPU_AMPLE = Threshold(0.30, "of its memory, free, then")
ALL_CPUS = Threshold(0.9, "of the usable CPUs, used: the run makes its batches as fast as they let it")


def _judges(seen: Seen) -> Told:
    for at, gpu in seen.own_gpus():
        history, free = seen.utilisations(gpu), free_share(gpu)
        busy = seen.held(history)
        if busy is None or turns(history) >= SAW_TURNS:
            continue
        if busy < GPU_IDLE and free is not None and free > GPU_AMPLE and _supply_is_short(seen.now):
            sentence = f"GPU {gpu.index} is used {busy:.0%}, has memory to spare, and waits for data: run "
            yield at, True, f"{sentence}`feedline diagnose`"


def _supply_is_short(moment: Moment) -> bool:
    waits = [rates.wait_share or 0.0 for _, _, rates, _ in moment.loaders if rates is not None]
    used, usable = moment.host.cpus_used, moment.host.cpus_usable
    return max(waits, default=0.0) >= WAIT_NOTE or (used is not None and used >= ALL_CPUS * usable)


ALARM = Alarm(
    Entry(
        code="gpu_idle",
        verb="top",
        title="a GPU with memory to spare waits for data",
        means="The batches come too slowly for it.",
        recognised="A GPU under 30 % with 30 % of its memory free, while the loop waits or the run's CPUs are all "
        "busy.",
        to_do="Run `feedline diagnose`.",
        abstains="A GPU in a sawtooth is told as that. GPUs on which only other processes compute raise none, where "
        "the driver tells.",
        example="GPU 0 is used 12%, has memory to spare, and waits for data: run `feedline diagnose`",
    ),
    turn=GPUS + 30,
    judges=_judges,
)
