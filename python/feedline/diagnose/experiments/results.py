# SPDX-License-Identifier: Apache-2.0
"""What was tried after the script had ended: on a copy of its process (clones.py), its files' disk, and its device."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from feedline.diagnose.experiments import clones, disk_probe, pinning
from feedline.diagnose.experiments.disk_probe import DiskProbe
from feedline.diagnose.experiments.intervals import GAIN, Shown, beside_fewer, finite, is_known, shown, told

_GRACE_S = 5.0  # beyond the budget
_END_S = 0.5  # that killed processes are waited for: a full machine takes some of it
_TELLING = 0.5  # of a rung's rate: where its interval is wider to either side, it says little of the pace
_PROBE_S, _PROBE_SHARE = 1.2, 0.25  # of the budget, at most
_COPIES_S, _COPIES_SHARE = 20.0, 0.3  # likewise; most of it is the start of a process with torch


@dataclass(frozen=True)
class Rung:
    """The loader alone, without the loop's work, with so many workers."""

    workers: int
    batches_per_s: float
    low: float  # 95 % interval
    high: float
    batches: int
    kept: bool = False  # gains over the rungs below
    beside: str = ""  # what the rungs below show of it, in words


@dataclass(frozen=True)
class Ceiling:
    """What the loop could do at most: one step after the other, none of them waiting for a batch."""

    steps_per_s: float
    low: float  # 95 % interval
    high: float
    steps: int


@dataclass(frozen=True)
class Comparison:
    """One change, and what it did to one figure; both were measured in turn. Intervals are of 95 %.

    The ratio is after / before, round by round: what a machine does meanwhile meets both, so its interval is narrower.
    """

    change: str
    figure: str
    before: float
    before_low: float
    before_high: float
    after: float
    after_low: float
    after_high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    files: int | None = None  # whose pages were dropped
    file_bytes: int | None = None
    own_ms: float | None = None  # that the change itself takes, outside of the figure

    @property
    def kept(self) -> bool:
        """It is better by more than its interval and five percent. Of times less is better, of rates more."""
        if not is_known(self.ratio_low, self.ratio_high):
            return False
        if self.figure.startswith("ms"):
            return self.ratio_high < 1 and self.ratio < 1 / GAIN
        return self.ratio_low > 1 and self.ratio > GAIN

    def line(self) -> str:
        own = "" if self.own_ms is None else f", and takes {self.own_ms:.1f} ms itself"
        if not is_known(self.ratio_low, self.ratio_high):
            return f"{self.change}: {self.before:.1f} → {self.after:.1f} {self.figure}   not measured well enough"
        interval = told(self.ratio_low, self.ratio_high, 2)
        gains = "" if self.kept else "   no gain shown"
        return (
            f"{self.change}: {self.before:.1f} → {self.after:.1f} {self.figure}, {self.ratio:.2f} times "
            f"{interval}{own}{gains}"
        )


@dataclass(frozen=True)
class Handing:
    """One batch from a worker to the loop, apart from making it; ms."""

    packing_ms: float  # CPU of the worker
    unpacking_ms: float  # CPU of the loop's process
    waiting_ms: float  # of the loop's process for the worker's answers meanwhile


@dataclass(frozen=True)
class Experiments:
    rungs: list[Rung] = field(default_factory=list)
    refused: str | None = None  # why there are no rungs
    ceiling: Ceiling | None = None
    comparisons: list[Comparison] = field(default_factory=list)
    not_tried: list[dict[str, str]] = field(default_factory=list)  # "change" and "why"
    disk: DiskProbe | None = None
    handing: Handing | None = None
    cold: bool = False  # the rungs read their files from the disk, as the run did
    warm_because: str | None = None  # why they did not, though the run did: they answer another question

    def as_dict(self) -> dict[str, Any]:
        made = asdict(self)
        made["comparisons"] = [{**asdict(one), "kept": one.kept} for one in self.comparisons]
        return {name: finite(value) for name, value in made.items()}

    def rates(self) -> dict[int, float]:
        """Batches per second by workers, of rungs long enough: one of a second cannot hold what happens once in ten."""
        telling = (rung for rung in self.rungs if rung.high - rung.low <= 2 * _TELLING * rung.batches_per_s)  # not inf
        return {rung.workers: rung.batches_per_s for rung in telling}

    def rate_intervals(self) -> dict[int, tuple[float, float]]:
        """The 95 % intervals of all that have one, also of those that tell too little for `rates()`."""
        return {rung.workers: (rung.low, rung.high) for rung in self.rungs if is_known(rung.low, rung.high)}

    def beside_fewer(self, present: int) -> dict[int, str]:
        """By workers: what each rung shows beside the best of fewer, as Shown has it; or that it is no better than the
        present number.
        """
        figures = {one.workers: (one.batches_per_s, one.low, one.high) for one in self.rungs}
        found = beside_fewer(figures)
        for workers in figures:
            if workers > present in figures and shown(figures[workers], figures[present]) is Shown.NOT_BETTER:
                found[workers] = Shown.NOT_BETTER
        return {workers: one.value for workers, one in found.items()}

    def copies(self) -> dict[str, tuple[float, float]]:
        """By change: what copies take with it, as a share of what they take without, [low, high].

        Under pinning.OWN likewise what page-locking itself takes.
        """
        made = [one for one in self.comparisons if one.change in (pinning.LOCKED, pinning.ASKED)]
        shares = {one.change: (one.ratio_low, one.ratio_high) for one in made}
        for one in made:
            if one.own_ms is not None:
                shares[pinning.OWN] = (one.own_ms / max(one.before_high, 1e-9), one.own_ms / max(one.before_low, 1e-9))
        return shares

    def lines(self, predicted: Mapping[int, float | None]) -> list[str]:
        """For a terminal; `predicted`: batches per second of the model, by workers."""
        lines = self._ladder(predicted)
        if self.ceiling is not None:
            top = self.ceiling
            lines.append(
                f"  the loop without waiting: {top.steps_per_s:.1f} steps/s at most  {told(top.low, top.high)}"
            )
        if self.comparisons or self.not_tried:
            lines.append("  tried, in turn with how it is (95 % intervals):")
        lines += [f"    {one.line()}" for one in self.comparisons]
        lines += [f"    {one['change']}: not tried: {one['why']}" for one in self.not_tried]
        return lines + ([] if self.disk is None else [_disk_line(self.disk)])

    def _ladder(self, predicted: Mapping[int, float | None]) -> list[str]:
        if not self.rungs:
            return [f"  no ladder of workers: {self.refused}"]
        lines = ["  measured: the loader alone, by workers (batches/s, 95 % interval, the model's prediction)"]
        if self.cold:
            lines.append("  with its files out of the page cache, as the run read them")
        if self.warm_because is not None:
            lines.append(f"  from the page cache, and not from the disk as the run did: {self.warm_because}")
        for rung in self.rungs:
            beside = f"   {rung.beside}" if rung.beside else ""
            model = predicted.get(rung.workers)
            lines.append(
                f"    {rung.workers:>3}  {rung.batches_per_s:8.1f}  {told(rung.low, rung.high)}"
                f"  {'' if model is None else format(model, '.1f'):>8}{beside}"
            )
        return lines


def _disk_line(disk: DiskProbe) -> str:
    if disk.bytes_per_s is None or disk.latency_ms is None:
        return f"  no read probe of the disk: {disk.refused}"
    return (
        f"  the disk {disk.device}, past the page cache: {(disk.bytes_per_s or 0) / 1e6:.1f} MB/s "
        f"[{(disk.bytes_per_s_low or 0) / 1e6:.1f}, {(disk.bytes_per_s_high or 0) / 1e6:.1f}], one small read "
        f"{disk.latency_ms:.2f} ms [{disk.latency_ms_low or 0:.2f}, {disk.latency_ms_high or 0:.2f}]"
    )


def run(
    session: Path,
    budget: float,
    ceiling: Ceiling | None,
    files: Sequence[Mapping[str, Any]],
    devices: Sequence[Mapping[str, Any]] = (),
    cold: bool = False,
    tell: Callable[[str, float], None] = lambda _what, _left_s: None,
) -> Experiments:
    """All that `budget` seconds are enough for. Ended by an exception, it leaves no process behind.

    `files`: of the data set, as `_engine.look_at_files` tells of them; `devices`: what processes told of theirs.
    `cold`: the run read its files from the disk. `tell` hears what is tried, and the seconds left, again and again.
    """
    until = time.monotonic() + budget
    tell("the disk", budget)
    disk = disk_probe.probe(files, min(_PROBE_S, _PROBE_SHARE * budget))
    tell("copies to the device", until - time.monotonic())
    copies, no_copies = pinning.measure(devices, min(_COPIES_S, _COPIES_SHARE * budget))
    step_s = 1 / ceiling.steps_per_s if ceiling is not None else 0.0
    found = _ask_the_copy(session, until - time.monotonic(), step_s, cold, tell)
    warm_because = [why for rung in found.get("rungs", []) if (why := rung.pop("warm_because", None))]
    return Experiments(
        keep([Rung(**rung) for rung in found.get("rungs", [])]),
        found.get("refused"),
        ceiling,
        [Comparison(**one) for one in [*found.get("comparisons", []), *copies]],
        [*found.get("not_tried", []), *no_copies],
        disk,
        Handing(**found["handing"][0]) if found.get("handing") else None,
        cold and bool(found.get("rungs")) and not warm_because,
        next(iter(warm_because), None),
    )


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C is heard behind the block: in the middle of clearing up it would leave the rest behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[tuple[int, Any]] = []
    before = signal.signal(signal.SIGINT, lambda *about: heard.append(about))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    if heard and callable(before):
        before(*heard[0])


def end_the_copy(session: Path) -> None:
    """The copy in `session`, asleep or at work, with all that it has started."""
    with undisturbed(), contextlib.suppress(OSError, ValueError):
        group = os.getpgid(int((session / clones.PID).read_text()))  # of the session that it was made in, its own
        (session / clones.PID).unlink()  # its number may become another's
        if group == os.getpgrp():
            return
        os.killpg(group, signal.SIGKILL)  # its workers go with it
        until = time.monotonic() + _END_S
        while _group_lives(group) and time.monotonic() < until:
            time.sleep(0.01)


def _group_lives(number: int) -> bool:
    """Whether a process of this group has not ended yet."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                state, _, group = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[:3]
                if int(group) == number and state not in "ZX":
                    return True
    return False


def _ask_the_copy(
    session: Path, budget: float, step_s: float, cold: bool, tell: Callable[[str, float], None]
) -> dict[str, Any]:
    """Wakes the copy in `session` and waits for what it measures."""
    try:
        pid = int((session / clones.PID).read_text())
    except (OSError, ValueError):
        return {"refused": "there is no copy of the script's process to try it on"}
    unfinished = session / f"{clones.GO}.part"
    unfinished.write_text(f"{budget} {step_s} {int(cold)}")
    unfinished.replace(session / clones.GO)
    until = time.monotonic() + budget + _GRACE_S
    try:
        while time.monotonic() < until and _is_alive(pid):
            made = _read(session) or {}
            if made.get("finished"):
                break
            tell(made.get("trying", "the loader"), until - _GRACE_S - time.monotonic())
            time.sleep(0.05)
    finally:
        end_the_copy(session)
    found = _read(session)
    if found is None:
        return {"refused": "the copy of the script's process ended, or got stuck, before it had measured"}
    return found


def keep(rungs: list[Rung]) -> list[Rung]:
    """The same rungs; those are kept whose interval lies above the best so far."""
    found = beside_fewer({rung.workers: (rung.batches_per_s, rung.low, rung.high) for rung in rungs})
    ordered = sorted(rungs, key=lambda rung: rung.workers)
    return [
        replace(rung, kept=found[rung.workers] is Shown.BETTER, beside=_BESIDE[found[rung.workers]]) for rung in ordered
    ]


_BESIDE = {
    Shown.BETTER: "",
    Shown.NOT_BETTER: "no more than with fewer",
    Shown.UNDECIDED: "no gain shown",
    Shown.UNMEASURED: "",  # its interval says so
}


def _read(session: Path) -> dict[str, Any] | None:
    try:
        value = json.loads((session / clones.RESULT).read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _is_alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rsplit(")", 1)[-1].split()[0] not in "ZX"
