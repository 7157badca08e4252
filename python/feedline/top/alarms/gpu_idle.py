# SPDX-License-Identifier: Apache-2.0
"""A GPU with free memory has little to do."""

from ...findings import Entry, Threshold
from ...machine.gpu import Reading
from ..host_indicators import ALL_CPUS, DISK_WAITS, FEW_CPUS, indicators_text, longest_wait, supply_is_short
from ..rules import GPUS, WAIT_NOTE, Alarm, Occurrences, Seen, free_share
from .gpu_sawtooth import SAW_TURNS, turns

GPU_IDLE = Threshold(0.40, "utilisation below which a GPU has too little to do")
GPU_AMPLE = Threshold(0.30, "fraction of the GPU's memory that must be free for larger batches to fit")
IN_USE = Threshold(
    1e9, "if the driver lists no processes, an idle GPU with at least this many bytes in use counts as used by this run"
)
__all__ = ["ALARM", "ALL_CPUS", "DISK_WAITS", "FEW_CPUS", "GPU_AMPLE", "GPU_IDLE", "IN_USE", "WAIT_NOTE"]


def _evaluate(seen: Seen) -> Occurrences:
    for at, gpu in seen.own_gpus():
        history, free = seen.utilisations(gpu), free_share(gpu)
        busy = seen.held(history)
        if busy is None or busy >= GPU_IDLE or turns(history) >= SAW_TURNS or not _is_used(gpu, busy):
            continue
        has_room = free is not None and free > GPU_AMPLE
        memory = "its free memory is unknown" if free is None else f"{free:.0%} of its memory is free"
        signs = indicators_text(seen)
        reasons = f" ({signs})" if signs else ""
        yield at, has_room, f"GPU {gpu.index} is {busy:.0%} utilised, and {memory}{reasons}: {_advice(seen, has_room)}"


def _is_used(gpu: Reading, busy: float) -> bool:
    return bool(gpu.pids) or busy > 0 or (gpu.memory_used_bytes or 0) >= IN_USE


def _advice(seen: Seen, has_room: bool) -> str:
    if supply_is_short(seen.now):
        return "it waits for data; run `feedline diagnose`"
    larger = "use larger batches, or find waits in the loop with" if has_room else "find waits in the loop with"
    if longest_wait(seen.now) is not None:
        return f"batches arrive in time; {larger} `feedline trace`"
    return "whether it waits for data cannot be seen from outside; run `feedline diagnose`"


ALARM = Alarm(
    Entry(
        code="gpu_idle",
        verb="top",
        title="a GPU with free memory has little to do",
        means="Batches arrive too slowly, batches are small, or the loop itself waits. The CPUs and disks of the "
        "machine may look idle in each case: one busy worker of 16 CPUs, or a wait for a network, is enough.",
        recognised="The utilisation of a GPU is under 40 %, regardless of CPU use. It is an alarm if 30 % of the GPU's "
        "memory is free, and a note otherwise. The message includes the processes, whether their memory "
        "is still growing, and whether the loop waits, all CPUs are busy, or a task waits for storage.",
        to_do="Run `feedline diagnose`; if batches arrive in time, use larger batches, or run `feedline trace`.",
        abstains="If the GPU alternates between busy and idle, gpu_sawtooth is reported instead. GPUs used only by "
        "other processes raise no alarm, if the driver lists processes. If it lists none, a GPU without utilisation "
        "and with less than 1 GB of memory in use is not judged.",
        example="GPU 0 is 12% utilised, and 91% of its memory is free (9 processes use 0.4 of 16 CPUs, and "
        "tasks wait for storage): it waits for data; run `feedline diagnose`",
    ),
    priority=GPUS + 30,
    evaluate=_evaluate,
)
