# SPDX-License-Identifier: Apache-2.0
"""Terminal output about the GPU: how to interpret GPU-Util given the loop's own waits."""

from __future__ import annotations

from feedline.diagnose.rules.shares import IDLE_LOADER
from feedline.profiler.summary.figures import Gpu, Summary

_LOW, _BUSY = 0.6, 0.9
_UNUSED = 0.3
_SAWTOOTH = 0.5  # difference between low and high samples
_SLOWED = 0.1
_ALL_CPUS, _FEW_CPUS = 0.9, 0.5  # share of usable CPUs, as in `feedline top`
_FEWEST_STEPS = 5  # minimum number of timed steps


def lines(summary: Summary) -> list[str]:
    """Returns the lines about the GPU, or only those about the step if there is no GPU."""
    gpu = summary.on_device.gpu
    if gpu is None:
        return step_lines(summary)
    number = ", ".join(str(index) for index in gpu.indices)
    facts = [f"GPU-Util {gpu.utilisation:.0%} ({gpu.lowest:.0%} to {gpu.highest:.0%})"]
    if gpu.memory_used_bytes is not None and gpu.memory_bytes:
        facts.append(f"memory peak {gpu.memory_used_bytes / 2**30:.1f} of {gpu.memory_bytes / 2**30:.0f} GiB")
    if gpu.received_bytes_per_s is not None:
        facts.append(f"receives {gpu.received_bytes_per_s / 1e9:.2g} GB/s")
    if gpu.power_w is not None:
        facts.append(f"{gpu.power_w:.0f} W")
    return [f"  GPU {number}: {', '.join(facts)}", f"    {explanation(summary, gpu)}", *step_lines(summary)]


def step_lines(summary: Summary) -> list[str]:
    """Reports the device time per step. The loop's own clock cannot measure this time, since launches are
    asynchronous.
    """
    took, timed = summary.on_device.device_step_ms, summary.on_device.timed_steps
    if took is None or timed < _FEWEST_STEPS:
        return []
    return [
        f"  the device takes {took:.2f} ms per step (stream events, {timed} steps timed); the loop waits "
        f"{summary.loop.wait_ms:.2f} ms for a batch"
    ]


def explanation(summary: Summary, gpu: Gpu) -> str:
    """Explains a low or high GPU-Util in this run."""
    waits = summary.waits.loader
    sawtooth = ", alternating with work" if gpu.highest - gpu.lowest > _SAWTOOTH else ""
    if waits >= IDLE_LOADER and gpu.utilisation >= _BUSY:
        return f"GPU-Util is high whenever any kernel runs, but the loop waits for the loader {waits:.0%} of its time"
    if waits >= IDLE_LOADER:
        return f"the GPU is idle while the loop waits for the loader ({waits:.0%} of its time){sawtooth}"
    if gpu.utilisation < _LOW:
        return (
            f"the loader, for which the loop waits {waits:.0%} of its time, is not the cause: Python code, "
            "kernel launches or synchronization in the step leave the GPU idle; feedline trace shows the gaps"
        )
    return "GPU-Util shows that kernels run, not how much of the GPU they use"


def hints(summary: Summary) -> list[str]:
    """Returns hints that apply regardless of where the time is spent."""
    found = []
    if any(copies.pinned and not copies.asked for copies in summary.on_device.copies):
        found.append("batches are pinned but copied without non_blocking=True: set both")
    if any(copies.asked and not copies.pinned for copies in summary.on_device.copies):
        found.append("batches are copied with non_blocking=True but are not pinned: set pin_memory=True as well")
    gpu, waits = summary.on_device.gpu, summary.waits.loader
    if gpu is not None and gpu.utilisation < _UNUSED and waits < IDLE_LOADER and _is_ample(gpu):
        found.append(
            "GPU-Util is below 30 % and half of the GPU's memory is free: a larger batch gives each launch more work"
        )
    if gpu is not None and gpu.utilisation < _UNUSED and waits >= IDLE_LOADER and _is_ample(gpu):
        found.append(_unfed(summary, gpu))
    if gpu is not None and (gpu.slowed or 0.0) > _SLOWED:
        found.append(
            f"power or heat lowered the GPU's clocks in {gpu.slowed:.0%} of samples: see nvidia-smi -q -d PERFORMANCE"
        )
    return found


def _unfed(summary: Summary, gpu: Gpu) -> str:
    """Describes an idle GPU with free memory, together with the host's CPU usage."""
    host = summary.host
    sawtooth = ", in a sawtooth" if gpu.highest - gpu.lowest > _SAWTOOTH else ""
    words = f"GPU-Util is below 30 %{sawtooth} and half of the GPU's memory is free, while the loop waits for data"
    if host.used_cpus is None:
        return words
    busy = host.used_cpus / max(host.cpus, 1e-9)
    side = "so producing batches is CPU-bound" if busy >= _ALL_CPUS else "producing batches and waiting"
    side = "so batches wait for storage or the network" if busy < _FEW_CPUS else side
    makers = summary.counted(summary.workers)
    return f"{words}: {makers} and the loop use {host.used_cpus:.1f} of {host.cpus:.3g} CPUs, {side}"


def _is_ample(gpu: Gpu) -> bool:
    return gpu.memory_used_bytes is not None and gpu.memory_used_bytes < gpu.memory_bytes / 2
