# SPDX-License-Identifier: Apache-2.0
"""A GPU with memory to spare waits for data."""

from ...findings import Entry, Threshold
from ..host_indicators import ALL_CPUS, DISK_WAITS, FEW_CPUS, indicators_text, supply_is_short
from ..rules import GPUS, WAIT_NOTE, Alarm, Occurrences, Seen, free_share
from .gpu_sawtooth import SAW_TURNS, turns

GPU_IDLE = Threshold(0.30, "utilisation below which a GPU with memory to spare is starved")
GPU_AMPLE = Threshold(0.30, "of its memory, free in that case")
__all__ = ["ALARM", "ALL_CPUS", "DISK_WAITS", "FEW_CPUS", "GPU_AMPLE", "GPU_IDLE", "WAIT_NOTE"]


def _evaluate(seen: Seen) -> Occurrences:
    for at, gpu in seen.own_gpus():
        history, free = seen.utilisations(gpu), free_share(gpu)
        busy = seen.held(history)
        if busy is None or turns(history) >= SAW_TURNS:
            continue
        if busy < GPU_IDLE and free is not None and free > GPU_AMPLE and supply_is_short(seen.now):
            signs = indicators_text(seen)
            beside = f" ({signs})" if signs else ""
            sentence = f"GPU {gpu.index} is used {busy:.0%}, has memory to spare, and waits for data{beside}: run "
            yield at, True, f"{sentence}`feedline diagnose`"


ALARM = Alarm(
    Entry(
        code="gpu_idle",
        verb="top",
        title="a GPU with memory to spare waits for data",
        means="Batches arrive too slowly for the GPU.",
        recognised="A GPU under 30 % has 30 % of its memory free while the loop waits, all CPUs are "
        "busy, or few are and something waits for storage. The message includes the processes and whether their memory "
        "is still growing.",
        to_do="Run `feedline diagnose`.",
        abstains="A GPU in a sawtooth has that alarm instead. GPUs used only by other processes raise none, "
        "if the driver lists processes.",
        example="GPU 0 is used 12%, has memory to spare, and waits for data (9 processes use 0.4 of 16 CPUs, and "
        "storage is waited for): run `feedline diagnose`",
    ),
    priority=GPUS + 30,
    evaluate=_evaluate,
)
