# SPDX-License-Identifier: Apache-2.0
"""Measures a script's loader in new processes, one for each measurement, so that the script may use its GPU.

In each process, ladder_probe.py changes the first loader before its loop begins, times about a hundred batches, and
ends the script. Meanwhile, the calling process reads the GPUs.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from feedline.machine import gpu
from feedline.machine import limits as host_limits
from feedline.machine.storage import storage_facts
from feedline.machine.worker_count import WorkerCount, worker_count
from feedline.profiler import process_copies
from feedline.profiler.command import environment_of, start
from feedline.tune import expected_effect, ladder_moves, ladder_probe
from feedline.tune.moves import Candidate, Moves, size_words
from feedline.tune.script import Tuned, end_group, ending_on_signals, limits_of
from feedline.tune.search import Expected, Lost, Refused, Rung, Visit, search_settings
from feedline.tune.settings import Limits, Options, Setting

_BATCHES = 100  # batches per measurement
_LONGEST_S = 60.0  # maximum duration of a measurement with slow batches
_START_S = 300.0  # maximum time until a script's first batch
_GRACE_S = 10.0  # time in which a script should end
_POLL_S = 0.05
_GPU_EVERY_S = 0.2
_GPU_MEMORY = 0.95  # share of the GPU's memory that a larger batch may need
_LEAST_COPIES = 0.5  # copies per batch, from which the loop counts as copying its batches
_NO_GPU = "not judged, because the script copies no batches to a GPU"

Announce = Callable[[Candidate, "Expected | None"], None]


def tune(
    command: Sequence[str],
    options: Options,
    tell: Callable[[Rung], None] = lambda rung: None,
    say: Callable[[str], None] = lambda phase: None,
    announce: Announce = lambda candidate, expected: None,
    gpus: gpu.Gpus | None = None,
) -> Tuned:
    """Runs `command` repeatedly, and tunes the loader of its first loop.

    Args:
        tell: called after each rung; `announce` is called before it, with the expected effect.
        say: called with a description of each new phase.
        gpus: reads the GPUs; None for this machine's.

    Raises CommandError if the command cannot be started. No process of the command is left running.
    """
    plant = LadderPlant(command, gpus or gpu.of_engine())
    began = time.monotonic()
    with ending_on_signals():
        say("running the script with its own settings")
        try:
            plant.begin(options.cpus)
        except (Refused, Lost) as error:
            return Tuned(list(command), plant.returncode, refused=f"the script's loader was not measured: {error}")
        say("measuring")
        limits, advice = plant.limits(options)
        left = max(options.budget_s - (time.monotonic() - began), 1.0)
        found = search_settings(
            plant,
            plant.setting,
            limits,
            left,
            time.monotonic,
            tell,
            plant.rungs,
            lambda candidate, champion, visits: expected_effect.of(
                candidate, champion, visits, limits.cpus, plant.copy_share
            ),
            announce,
        )
    notes = [f"advised number of workers: {advice.workers} ({advice.why})", *plant.notes(limits)]
    if any(rung.candidate.reported and rung.comparison is not None for rung in found.rungs):
        notes.append(
            "a larger batch can hide a slow loader: waits are rarer and longer, but each sample costs the loader as "
            "much as before. Tune workers at the batch size that you train with; to let tune change it, pass "
            "--batch-size-range"
        )
    if found.best.non_blocking and not found.base.non_blocking:
        notes.append("non_blocking is not an argument of the loader: write batch.to(device, non_blocking=True)")
    if not found.rungs:
        return Tuned(list(command), plant.returncode, refused="; ".join(found.notes), notes=notes)
    return Tuned(list(command), None, found, plant.facts, None, limits, None, notes + found.notes)


class LadderPlant:
    """Measures settings of a command's first loader, each time in a new process."""

    def __init__(self, command: Sequence[str], gpus: gpu.Gpus) -> None:
        self._command, self._gpus = list(command), gpus
        self._results: dict[Setting, list[dict[str, Any]]] = {}
        self._cpus: int | None = None
        self.facts: dict[str, Any] = {}
        self.returncode: int | None = None

    @property
    def setting(self) -> Setting:
        """Returns the loader's own settings."""
        return Setting(**self.facts["setting"])

    @property
    def rungs(self) -> tuple[Callable[[Setting, Limits], Moves], ...]:
        """Returns the changes to try; without copies to a GPU, neither pinning nor batch sizes."""
        return ladder_moves.ALL if self.facts["gpu"] else ladder_moves.WITHOUT_GPU

    def begin(self, cpus: int | None) -> None:
        """Runs the script once with its own settings. Raises Refused or CommandError."""
        self._cpus = cpus
        result = self._run(None, 0.0)
        copies = result["copies"]
        own = Setting(**result["setting"]).but(
            non_blocking=_is_copying(result) and copies["blocking"] == 0 and copies["pinned"] > 0
        )
        self.facts = {**result, "setting": own.as_dict(), "gpu": _is_copying(result)}
        self._results[own] = [result]

    def limits(self, options: Options) -> tuple[Limits, WorkerCount]:
        """Returns the limits, and the advised number of workers with its reason."""
        facts = self.facts
        storage = storage_facts(facts["root"])[0] if facts["root"] else None
        kind = None if storage is None else str(storage["kind"])
        cores = facts["cores"]
        if self._cpus is not None and cores is not None:
            cores = min(cores, self._cpus)
        advice = worker_count(min(facts["usable_cpus"], self._cpus or 1 << 16), cores, facts["ranks"], kind)
        limits = limits_of(options, facts)
        known = Limits(
            limits.cpus, limits.memory, limits.most_workers, limits.batch_sizes, limits.gpu, 0, advice.workers
        )
        return known, advice

    def notes(self, limits: Limits) -> list[str]:
        notes = []
        size = self.facts["dataset_bytes"]
        if size["bytes"] is not None and limits.advised_workers * size["bytes"] > limits.memory // 10:
            least = "" if size["whole"] else "at least "
            copies = size_words(limits.advised_workers * size["bytes"])
            notes.append(
                f"the dataset's Python objects need {least}{size_words(size['bytes'])} in each worker that touches or "
                f"unpickles them: {copies} for {limits.advised_workers} workers; store them in one array to share them"
            )
        elif size["why"] is not None:
            notes.append(
                f"the workers' copies of the dataset were not judged, because pickling it failed: {size['why']}"
            )
        if not self.facts["gpu"]:
            notes.append(f"pinning, non_blocking and the batch size: {_NO_GPU}")
        elif not any(visit["gpu"] is not None for one in self._results.values() for visit in one):
            why = self._gpus.unavailable or "the driver reported no utilisation"
            notes.append(f"GPU utilisation: not judged, because {why}")
        return notes

    def visit(self, setting: Setting, seconds: float) -> Visit:
        first = self._results.get(setting)
        if first is not None and len(first) == 1 and setting == self.setting and not first[0].get("is_used"):
            result = first[0]
            result["is_used"] = True
        else:
            self._check(setting)
            result = self._run(setting, seconds)
            self._results.setdefault(setting, []).append(result)
        cycles, waits = result["cycles_s"], result["waits_s"]
        return Visit(
            None,
            len(cycles) / sum(cycles),
            setting.batch_size or 1,
            tuple(1000 * wait for wait in waits),
            sum(waits) / sum(cycles),
            result["gpu"],
        )

    def border_s(self, setting: Setting) -> float:
        result = self._run(setting, 0.0, border=True)
        return float(result["border_s"])

    def bytes_ahead(self, setting: Setting) -> int | None:
        size = self.facts["batch_bytes"]
        if size is None:
            return None
        if setting.batch_size and self.setting.batch_size:
            size = size * setting.batch_size // self.setting.batch_size
        if setting.pin_memory:  # torch rounds page-locked memory up to powers of two
            size = 1 << max(size - 1, 0).bit_length()
        return int(size) * setting.batches_ahead()

    def epoch_batches(self) -> int | None:
        batches: int | None = self.facts["epoch_batches"]
        return batches

    def copy_share(self, setting: Setting) -> float | None:
        """Returns the share of the loop's time inside calls that copy batches to the GPU; None if not measured."""
        results = [one for one in self._results.get(setting, ()) if _is_copying(one)]
        if not results:
            return None
        return statistics.median(min(one["copies"]["seconds"] / sum(one["cycles_s"]), 1.0) for one in results)

    def _check(self, setting: Setting) -> None:
        """Raises Refused for settings that need a GPU which the script does not use, or more memory than it has."""
        own = self.setting
        needs_gpu = (setting.pin_memory and not own.pin_memory) or setting.batch_size != own.batch_size
        if (needs_gpu or (own.pin_memory and not setting.pin_memory)) and not self.facts["gpu"]:
            raise Refused(_NO_GPU)
        if setting.batch_size == own.batch_size or setting.batch_size is None:
            return
        needed, memory = self._gpu_bytes(setting.batch_size), self.facts["gpu_memory"]
        if needed is None or memory is None:
            raise Refused("not judged, because the GPU's memory is unknown")
        if needed > _GPU_MEMORY * memory["total"]:
            raise Refused(
                f"the GPU's memory is the limit: about {size_words(int(needed))} of {size_words(memory['total'])}"
            )

    def _gpu_bytes(self, batch_size: int) -> float | None:
        """Returns the predicted GPU memory, by a line through the two largest sizes measured; with one size, all of the
        script's memory grows with the batch.
        """
        peaks: dict[int, float] = {}
        others = 0
        for setting, results in self._results.items():
            for one in results:
                if one["gpu_memory"] is not None and setting.batch_size:
                    peaks[setting.batch_size] = max(peaks.get(setting.batch_size, 0), one["gpu_memory"]["peak"])
                    others = one["gpu_memory"]["others"]
        if not peaks:
            return None
        *smaller, largest = sorted(peaks)
        slope = peaks[largest] / largest
        if smaller:
            slope = max((peaks[largest] - peaks[smaller[-1]]) / (largest - smaller[-1]), 0.0)
        return others + peaks[largest] + slope * (batch_size - largest)

    def _run(self, setting: Setting | None, seconds: float, border: bool = False) -> dict[str, Any]:
        """Runs the script once. Raises Refused if the setting was not measured, and CommandError."""
        folder = Path(tempfile.mkdtemp(prefix="feedline-tune-"))
        request = {
            "setting": None if setting is None else setting.as_dict(),
            "batches": _BATCHES,
            "seconds": seconds,
            "most_s": _LONGEST_S,
            "border": border,
        }
        (folder / ladder_probe.REQUEST).write_text(json.dumps(request))
        (folder / process_copies.WATCHER).write_text(str(os.getpid()))
        process: subprocess.Popen[bytes] | None = None
        try:
            with open(folder / "errors", "wb") as errors:
                process = start(
                    self._command,
                    environment_of(folder, ladder_probe.__name__),
                    process_group=0,
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                    **({} if self._cpus is None else {"preexec_fn": _only(self._cpus)}),
                )
            utilisation = self._wait(process, folder)
            result = _result(folder)
            if result is None:
                self.returncode = process.poll()
                raise Refused(_why_nothing(process.poll(), folder))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)
        finally:
            if process is not None:
                end_group(process)
            shutil.rmtree(folder, ignore_errors=True)
        if result["refused"]:
            raise Refused("; ".join(dict.fromkeys(result["refused"].values())))
        if not border and not result["cycles_s"]:
            raise Refused("the loader's first loop had too few batches to measure")
        return {**result, "gpu": utilisation}

    def _wait(self, process: subprocess.Popen[bytes], folder: Path) -> float | None:
        """Waits for the result or the end of the script; returns the mean utilisation of the busiest GPU while the
        loop was measured, from 0 to 1.
        """
        seen: dict[int, list[float]] = {}
        until, next_read = time.monotonic() + _START_S + _LONGEST_S, 0.0
        while process.poll() is None and not (folder / ladder_probe.RESULT).exists():
            if time.monotonic() > until:
                raise Refused(f"the script did not produce enough batches within {_START_S + _LONGEST_S:.0f} s")
            if time.monotonic() >= next_read and (folder / ladder_probe.MEASURING).exists():
                next_read = time.monotonic() + _GPU_EVERY_S
                for one in self._gpus.read():
                    if one.utilisation is not None:
                        seen.setdefault(one.index, []).append(one.utilisation)
            time.sleep(_POLL_S)
        return max((statistics.mean(values) for values in seen.values()), default=None)


def _only(cpus: int) -> Callable[[], None]:
    allowed = host_limits.allowed_cpus()[:cpus]
    return lambda: os.sched_setaffinity(0, allowed)


def _is_copying(result: dict[str, Any]) -> bool:
    copies = result["copies"]
    return copies["device"] is not None and copies["calls"] >= _LEAST_COPIES * max(len(result["cycles_s"]), 1)


def _result(folder: Path) -> dict[str, Any] | None:
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, Any] = json.loads((folder / ladder_probe.RESULT).read_text())
        return found
    return None


def _why_nothing(returncode: int | None, folder: Path) -> str:
    if not list(folder.glob("*.note")):
        return "no Python process of the command loaded the probe (Python with -I, -E or -S ignores PYTHONPATH)"
    if not (folder / ladder_probe.CLAIM).exists():
        why = "the command did not iterate over a DataLoader of torch or Feedline"
    else:
        why = "the command ended before its first loop had enough batches"
    last = ""
    with contextlib.suppress(OSError):
        lines = (folder / "errors").read_text(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if returncode in (0, None):
        return why
    return f"{why}: it exited with status {returncode}" + (f" ({last[:200]})" if last else "")
