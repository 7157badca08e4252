# SPDX-License-Identifier: Apache-2.0
"""Runs a script once with each autocast dtype and compares time and memory.

The comparison does not check whether training still converges: compare the losses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from feedline.diagnose.experiments import forced_autocast
from feedline.diagnose.experiments.forced_autocast import OFF, SUFFIX, VARIABLE
from feedline.diagnose.trial import steps_per_s
from feedline.profiler import session
from feedline.profiler.collect import json_files
from feedline.profiler.experiments import Experiments
from feedline.profiler.intervals import finite, interval_text
from feedline.profiler.recordings import Recording
from feedline.profiler.session import Trying
from feedline.profiler.summary.figures import Summary

WAYS = (OFF, "bfloat16", "float16")
_GIB = 2**30
_MOST_HALF = 0.5  # share of parameters in half precision above which autocast, which casts float32, has no effect
_HALF = ("torch.bfloat16", "torch.float16")


@dataclass(frozen=True)
class Way:
    """One run of the script. Ratios are relative to the run without autocast."""

    autocast: str
    steps_per_s: float | None = None
    low: float | None = None  # 95 % interval
    high: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    memory_bytes: int | None = None  # peak tensor memory on the device, of the process with the highest peak
    why: str | None = None  # reason if it was not measured


@dataclass(frozen=True)
class PrecisionTrial:
    ways: tuple[Way, ...] = ()
    not_tried: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"ways": [finite(asdict(way)) for way in self.ways], "not_tried": self.not_tried}

    def lines(self) -> list[str]:
        if self.not_tried is not None:
            return [f"  mixed precision was not tried: {self.not_tried}"]
        lines = ["  mixed precision (one more run of the command for each dtype, with autocast around every step)"]
        lines += [f"    autocast {way.autocast:<9} {_way_text(way)}" for way in self.ways]
        lines.append(
            "    only time and memory were compared; also compare the losses before you change the precision; "
            "float16 requires "
            'torch.amp.GradScaler("cuda"), bfloat16 does not'
        )
        return lines


def run(command: Sequence[str], summary: Summary | None, recording: Recording) -> PrecisionTrial:
    """Runs `command` once for each autocast setting in WAYS, if the results would be meaningful. Raises
    CommandError.

    Args:
        command: the script, run as with ``--apply``, with its output on standard error.
        summary: summary of the first run; None if it had no loop.
        recording: recording of the first run.
    """
    reason = refusal(summary, recording)
    return PrecisionTrial(not_tried=reason) if reason is not None else compare(command, "cuda")


def refusal(summary: Summary | None, recording: Recording) -> str | None:
    """Returns why running the script again would be useless, or None."""
    if recording.returncode != 0:
        return "the command failed"
    if summary is None:
        return "no training loop was found"
    device: Mapping[str, Any] = summary.on_device.device
    if device.get("type") != "cuda" and not summary.loader.get("cuda"):
        return "no step of the loop used a GPU"
    elements = device.get("elements") or {}
    if sum(elements.get(name, 0) for name in _HALF) > _MOST_HALF * sum(elements.values()):
        return "the parameters are already in half precision, which autocast does not change"
    return None


def compare(command: Sequence[str], device: str, ways: Sequence[str] = WAYS) -> PrecisionTrial:
    """Runs `command` with each autocast setting in `ways`, and compares each result with the first.

    `device`: autocast's device type, "cuda" or "cpu". Raises CommandError.
    """
    base, *others = [_run(command, device, way) for way in ways]
    return PrecisionTrial((base, *(_compared_with(base, way) for way in others)))


def _run(command: Sequence[str], device: str, autocast: str) -> Way:
    notes: list[dict[str, Any]] = []

    def take(folder: Path, _recording: Recording, _files: Sequence[Mapping[str, Any]]) -> Experiments:
        notes.extend(json_files(folder, f"*{SUFFIX}"))
        return Experiments()

    trying = Trying(forced_autocast.__name__, take, {VARIABLE: f"{device} {autocast}"}, again=True)
    recording = session.run(command, trying=trying)
    memory = [note["memory_bytes"] for note in notes if note.get("memory_bytes") is not None]
    way = Way(autocast, memory_bytes=max(memory, default=None))
    if recording.returncode != 0:
        return replace(way, why=f"the run failed with exit status {recording.returncode}")
    if not notes:
        return replace(way, why="the run had no training step")
    refused = next((note["why"] for note in notes if note.get("why")), None)
    if refused is not None:
        return replace(way, why=f"autocast could not be enabled: {refused}")
    rate = steps_per_s(recording)
    if rate is None:
        return replace(way, why="the run was too short to measure steps per second")
    return replace(way, steps_per_s=rate[0], low=rate[1], high=rate[2])


def _compared_with(base: Way, way: Way) -> Way:
    if base.steps_per_s is None or base.low is None or base.high is None:
        return way
    if way.steps_per_s is None or way.low is None or way.high is None:
        return way
    low, high = way.low / max(base.high, 1e-9), way.high / max(base.low, 1e-9)
    return replace(way, ratio=way.steps_per_s / max(base.steps_per_s, 1e-9), ratio_low=low, ratio_high=high)


def _way_text(way: Way) -> str:
    if way.steps_per_s is None or way.low is None or way.high is None:
        return way.why or "not measured"
    words = f"{way.steps_per_s:8.1f} steps/s {interval_text(way.low, way.high)}"
    if way.ratio is not None and way.ratio_low is not None and way.ratio_high is not None:
        words += f", {way.ratio:.2f} times {interval_text(way.ratio_low, way.ratio_high, 2)}"
        words += "" if way.ratio_low > 1 or way.ratio_high < 1 else ", no difference shown"
    if way.memory_bytes is not None:
        words += f", peak memory {way.memory_bytes / _GIB:.2f} GiB"
    return words
