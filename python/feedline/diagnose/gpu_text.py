# SPDX-License-Identifier: Apache-2.0
"""Sentences about the GPU for a terminal: what GPU-Util is worth beside the loop's own waits."""

from __future__ import annotations

from feedline.diagnose.judging.shares import IDLE_LOADER
from feedline.watching.summary.figures import Gpu, Summary

_LOW, _BUSY = 0.6, 0.9
_UNUSED = 0.3
_SAWTOOTH = 0.5  # between its low and its high samples
_SLOWED = 0.1
_ALL_CPUS, _FEW_CPUS = 0.9, 0.5  # of the usable ones, as `feedline top` has it
_FEWEST_STEPS = 5  # timed ones, to tell of their time


def lines(summary: Summary) -> list[str]:
    """Up to three lines; none without a GPU."""
    gpu = summary.on_device.gpu
    if gpu is None:
        return step_lines(summary)
    number = ", ".join(str(index) for index in gpu.indices)
    facts = [f"GPU-Util {gpu.utilisation:.0%} ({gpu.lowest:.0%} to {gpu.highest:.0%})"]
    if gpu.memory_used_bytes is not None and gpu.memory_bytes:
        facts.append(f"memory {gpu.memory_used_bytes / 2**30:.1f} of {gpu.memory_bytes / 2**30:.0f} GiB at most")
    if gpu.received_bytes_per_s is not None:
        facts.append(f"{gpu.received_bytes_per_s / 1e9:.2g} GB/s to it")
    if gpu.power_w is not None:
        facts.append(f"{gpu.power_w:.0f} W")
    return [f"  GPU {number}: {', '.join(facts)}", f"    {explanation(summary, gpu)}", *step_lines(summary)]


def step_lines(summary: Summary) -> list[str]:
    """How long the device takes for a step, which the loop's own clock does not tell: it only launches the work."""
    took, timed = summary.on_device.device_step_ms, summary.on_device.timed_steps
    if took is None or timed < _FEWEST_STEPS:
        return []
    return [
        f"  the device takes {took:.2f} ms for a step, by events on its stream in {timed} of them; the loop waits "
        f"{summary.loop.wait_ms:.2f} ms for a batch"
    ]


def explanation(summary: Summary, gpu: Gpu) -> str:
    """What a low or a high GPU-Util means here."""
    waits = summary.waits.loader
    sawtooth = ", in turns with work" if gpu.highest - gpu.lowest > _SAWTOOTH else ""
    if waits >= IDLE_LOADER and gpu.utilisation >= _BUSY:
        return (
            f"GPU-Util counts any moment in which a kernel runs: the loop waits {waits:.0%} of its time for the loader "
            "all the same"
        )
    if waits >= IDLE_LOADER:
        return f"idle while the loop waits for the loader, {waits:.0%} of its time{sawtooth}"
    if gpu.utilisation < _LOW:
        return (
            f"not the loader's doing, for which the loop waits {waits:.0%} of its time: the step's own Python, its "
            "launches or its waits leave the GPU idle; feedline trace shows the gaps"
        )
    return "GPU-Util says that kernels run, not how much of the GPU they use"


def hints(summary: Summary) -> list[str]:
    """What is worth saying whatever it takes."""
    found = []
    if any(copies.pinned and not copies.asked for copies in summary.on_device.copies):
        found.append(
            "batches are page-locked and copied without non_blocking=True: one is worth little without the other"
        )
    if any(copies.asked and not copies.pinned for copies in summary.on_device.copies):
        found.append(
            "non_blocking=True is asked for batches that are not page-locked: one is worth little without the other"
        )
    gpu, waits = summary.on_device.gpu, summary.waits.loader
    if gpu is not None and gpu.utilisation < _UNUSED and waits < IDLE_LOADER and _is_ample(gpu):
        found.append(
            "GPU-Util is under 30 % and half of its memory is free: a larger batch gives each launch more work"
        )
    if gpu is not None and gpu.utilisation < _UNUSED and waits >= IDLE_LOADER and _is_ample(gpu):
        found.append(_unfed(summary, gpu))
    if gpu is not None and (gpu.slowed or 0.0) > _SLOWED:
        found.append(
            f"power or heat held the GPU's clocks down in {gpu.slowed:.0%} of the samples: nvidia-smi -q -d "
            "PERFORMANCE says which"
        )
    return found


def _unfed(summary: Summary, gpu: Gpu) -> str:
    """An idle GPU with memory to spare, and what the host shows beside it."""
    host = summary.host
    sawtooth = ", in a sawtooth" if gpu.highest - gpu.lowest > _SAWTOOTH else ""
    words = f"GPU-Util is under 30 %{sawtooth} and half of its memory is free, while the loop waits for data"
    if host.used_cpus is None:
        return words
    busy = host.used_cpus / max(host.cpus, 1e-9)
    side = "making batches takes it" if busy >= _ALL_CPUS else "the CPUs make batches and wait"
    side = "so reading is waited for, from storage or a network" if busy < _FEW_CPUS else side
    makers = summary.counted(summary.workers)
    return f"{words}: {makers} and the loop use {host.used_cpus:.1f} of {host.cpus:.3g} CPUs, {side}"


def _is_ample(gpu: Gpu) -> bool:
    return gpu.memory_used_bytes is not None and gpu.memory_used_bytes < gpu.memory_bytes / 2
