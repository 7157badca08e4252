# SPDX-License-Identifier: Apache-2.0
"""Runs a script, watches its first loop for a while, and then measures on a copy of its process.

start the command -> its first loop begins: a copy is forked -> the loop continues, and its steps are timed
-> the loop is held inside next() -> the copy measures -> the script ends or continues
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedline.profiler import process_copies, session
from feedline.profiler.command import environment_of, sampler_of, start
from feedline.profiler.summary import timeline
from feedline.profiler.summary.figures import Summary
from feedline.tune import probe
from feedline.tune.search import Lost, Refused, Rung, SearchResult, Visit, search_settings
from feedline.tune.settings import Limits, Options, Setting

_WATCH_S, _WATCH_SHARE = 10.0, 0.15  # limits on the time for timing steps, and on its share of the budget
_START_SHARE = 0.4  # of the budget, until the loop runs
_HOLD_S = 10.0  # until a loop has reached its next next()
_GRACE_S = 10.0  # for a script that should end, and for a late answer
_HURRY_S = 2.0  # the same, after Ctrl-C
_LEAST_STEPS = 5
_OTHERS_SHARE = 0.25  # of the CPUs: higher use is reported
_NO_PINNING = (
    "the script uses a GPU, which a copied process cannot use: all measurements are without page-locked "
    "memory, and pin_memory is unchanged; to measure its effect, pass --ladder"
)
_ALONE_VISITS = 3  # measurements per setting that include the loader without the loop's work, for the table
_POLL_S = 0.05
_MEMORY_SHARE, _SHARED_MEMORY_SHARE = 4, 0.8
_MOST_WORKERS_PER_CPU, _MOST_WORKERS = 4, 16


@dataclass
class Tuned:
    """The result of tuning a script."""

    command: list[str]
    returncode: int | None  # the script's own; None: we stopped it
    result: SearchResult | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    summary: Summary | None = None
    limits: Limits | None = None
    refused: str | None = None  # why nothing was measured
    notes: list[str] = field(default_factory=list)


def tune(
    command: Sequence[str],
    options: Options,
    tell: Callable[[Rung], None] = lambda rung: None,
    say: Callable[[str], None] = lambda phase: None,
) -> Tuned:
    """Runs `command` and tunes the loader of its first loop.

    Args:
        tell: called after each step of the search.
        say: called with a description of each new phase.

    Raises CommandError if the command cannot be started. All processes of the script are stopped in every case, unless
    the script should continue.
    """
    run = _Run(command, options)
    try:
        with ending_on_signals():
            return run.to_its_end(tell, say)
    finally:
        run.close()


class _Run:
    def __init__(self, command: Sequence[str], options: Options) -> None:
        self._command, self._options = list(command), options
        self._folder = Path(tempfile.mkdtemp(prefix="feedline-tune-"))
        self._script: subprocess.Popen[bytes] | None = None
        self._plant: ScriptPlant | None = None
        self._ended_by_us = True  # unless it ended by itself

    def to_its_end(self, tell: Callable[[Rung], None], say: Callable[[str], None]) -> Tuned:
        (self._folder / process_copies.WATCHER).write_text(str(os.getpid()))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            self._listen(listener)
            begin_ns = time.perf_counter_ns()
            script = self._script = self._start()
            sampler = sampler_of(script.pid)
            say("waiting for the script's first loop")
            connection = self._accept(listener, script)
        if connection is None:
            return self._nothing(script)
        began = time.monotonic()
        self._plant = plant = ScriptPlant(connection)
        say("timing the script's own steps")
        plant.ask_facts(self._options.cpus)
        self._watch(script)
        notes = self._hold(script) + [_NO_PINNING] * bool(plant.facts["lost_gpu"])
        host: dict[str, Any] = {}
        if sampler is not None:
            sampler.stop()
            host = sampler.record()
        recording = session.so_far(self._folder, self._command, begin_ns, host)
        summary = timeline.summarise(recording)
        notes += [note for note in recording.notes if "not watched" in note]
        say("measuring")
        left = max(self._options.budget_s - (time.monotonic() - began), 1.0)
        plant.begin(left, summary)
        limits = limits_of(self._options, plant.facts)
        found = search_settings(plant, plant.setting, limits, left, time.monotonic, tell)
        plant.close()
        returncode = self._end(script)
        if not found.rungs:
            return Tuned(self._command, returncode, refused="; ".join(found.notes), notes=notes)
        if summary is None or summary.loop.steps < _LEAST_STEPS:
            notes.append(
                "too few steps of the script were timed to measure its own work, so only the loader was measured"
            )
        others = None if summary is None else summary.host.others_cpus
        if summary is not None and others is not None and others > _OTHERS_SHARE * limits.cpus:
            others *= summary.host.sharing
            notes.append(
                f"other programs used {others:.1f} CPUs: gains are smaller and harder to show than on an idle "
                "machine, and the model assumes CPUs that were not available"
            )
        return Tuned(self._command, returncode, found, plant.facts, summary, limits, None, notes + found.notes)

    def _listen(self, listener: socket.socket) -> None:
        folder = os.open(self._folder, os.O_PATH | os.O_DIRECTORY)
        try:
            listener.bind(f"/proc/self/fd/{folder}/{probe.SOCKET}")
        finally:
            os.close(folder)
        listener.listen(1)
        listener.settimeout(_POLL_S)

    def _start(self) -> subprocess.Popen[bytes]:
        """Starts the command in its own process group, so that all its processes can be stopped; it cannot read from
        the terminal.
        """
        environment = environment_of(self._folder, probe.__name__)
        stdin = subprocess.DEVNULL if os.isatty(0) else None
        return start(self._command, environment, process_group=0, stdin=stdin)

    def _accept(self, listener: socket.socket, script: subprocess.Popen[bytes]) -> socket.socket | None:
        """Returns the copy; None if the script has ended or has reported that there is no copy."""
        while True:
            ended = script.poll() is not None or _refusal(self._folder) is not None
            with contextlib.suppress(TimeoutError):
                connection, _ = listener.accept()
                return connection
            if ended and not (self._folder / probe.CLAIM).exists():
                return None
            if ended and script.poll() is not None and not _has_clone(self._folder):
                return None

    def _nothing(self, script: subprocess.Popen[bytes]) -> Tuned:
        why = _refusal(self._folder)
        if why is not None:  # the script still runs
            returncode = self._end(script)
            return Tuned(self._command, returncode, refused=f"the script's loader was not measured: {why}")
        returncode = script.wait()
        self._ended_by_us = False
        pythons = len(list(self._folder.glob("*.note")))
        if pythons == 0:
            why = "no Python process of the command loaded the probe (Python with -I, -E or -S ignores PYTHONPATH)"
        else:
            why = "the command did not iterate over a DataLoader of torch or Feedline"
        ended = "" if returncode == 0 else f"; the command ended with status {returncode}"
        return Tuned(self._command, returncode, refused=why + ended)

    def _watch(self, script: subprocess.Popen[bytes]) -> None:
        """Lets the loop run for a while after its start, which may be delayed by the start of its workers."""
        until = time.monotonic() + _START_SHARE * self._options.budget_s
        while time.monotonic() < until and script.poll() is None:
            if any(self._folder.glob(f"*.{probe.STEPPING}")):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    script.wait(min(_WATCH_S, _WATCH_SHARE * self._options.budget_s))
                return
            time.sleep(_POLL_S)

    def _hold(self, script: subprocess.Popen[bytes]) -> list[str]:
        """Pauses every loop of the script at its next call to next(); failures are added to the notes."""
        (self._folder / probe.HOLD).touch()
        until = time.monotonic() + _HOLD_S
        while time.monotonic() < until:
            if script.poll() is not None:
                return []
            if any(self._folder.glob(f"*.{probe.HELD}")):
                return []
            time.sleep(_POLL_S)
        return [
            f"the script did not reach its next batch within {_HOLD_S:.0f} s, so it was running while settings were "
            "measured"
        ]

    def _end(self, script: subprocess.Popen[bytes]) -> int | None:
        """Ends the script as if it had called sys.exit(0), or lets it finish; returns the script's own exit status, if
        it has one.
        """
        returncode = script.poll()
        if returncode is None and self._options.keep_running:
            self._release(probe.GO)
            returncode = script.wait()
        if returncode is not None:
            self._ended_by_us = False
            return returncode
        self._release(probe.END)
        with contextlib.suppress(subprocess.TimeoutExpired):
            script.wait(_GRACE_S)
        return None

    def _release(self, answer: str) -> None:
        """Tells current and future paused loops how to continue. The file is written atomically."""
        unfinished = self._folder / f"{probe.RELEASE}.part"
        unfinished.write_text(answer)
        unfinished.replace(self._folder / probe.RELEASE)
        (self._folder / probe.HOLD).touch()

    def close(self) -> None:
        if self._plant is not None:
            self._plant.close()
        if self._script is not None and self._ended_by_us:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._release(probe.END)
                self._script.wait(_HURRY_S)
            end_group(self._script)
        shutil.rmtree(self._folder, ignore_errors=True)


class ScriptPlant:
    """The copy of the script's process, at the other end of `connection`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rw", encoding="utf-8")
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self._pid = int.from_bytes(credentials[:4], "little")
        self._step: tuple[float, float] | None = None
        self._until = 0.0
        self._batch_bytes: int | None = None
        self._seen: dict[Setting, int] = {}
        self.facts: dict[str, Any] = {}

    @property
    def setting(self) -> Setting:
        """Returns the loader's own settings."""
        return Setting(**self.facts["setting"])

    def ask_facts(self, cpus: int | None) -> None:
        self.facts = self._ask(_GRACE_S, do="facts", cpus=cpus)

    def begin(self, budget_s: float, summary: Summary | None) -> None:
        self._until = time.monotonic() + budget_s
        if summary is not None and summary.loop.steps >= _LEAST_STEPS:
            self._step = summary.loop.step_ms / 1000, summary.loop.step_cpu_ms / 1000

    def visit(self, setting: Setting, seconds: float) -> Visit:
        own = self.setting.batch_size
        step: dict[str, float] = {}
        if self._step is not None and setting.batch_size == own:
            step = {"step_s": self._step[0], "step_cpu_s": self._step[1]}
        left = max(self._until - time.monotonic(), 4 * seconds)
        seen = self._seen[setting] = self._seen.get(setting, 0) + 1
        request = {"do": "visit", "setting": setting.as_dict(), "seconds": seconds, "patience_s": left, **step}
        request["alone"] = seen <= _ALONE_VISITS
        answer = self._ask(left + _GRACE_S, **request)
        if self._batch_bytes is None and setting == self.setting:
            self._batch_bytes = self.facts["batch_bytes"] = answer["batch_bytes"]
        found = answer["visit"]
        return Visit(found["alone"], found["looped"], found["rows"], tuple(found["waits_ms"]))

    def border_s(self, setting: Setting) -> float:
        left = max(self._until - time.monotonic(), 1.0)
        return float(self._ask(left + _GRACE_S, do="border", setting=setting.as_dict())["border_s"])

    def bytes_ahead(self, setting: Setting) -> int | None:
        if self._batch_bytes is None:
            return None
        one = self._batch_bytes
        if setting.batch_size and self.setting.batch_size:
            one = one * setting.batch_size // self.setting.batch_size
        if setting.pin_memory:  # torch rounds page-locked memory up to powers of two
            one = 1 << max(one - 1, 0).bit_length()
        return one * setting.batches_ahead()

    def epoch_batches(self) -> int | None:
        batches: int | None = self.facts["epoch_batches"]
        return batches

    def _ask(self, timeout_s: float, **request: Any) -> dict[str, Any]:
        self._connection.settimeout(timeout_s)
        try:
            self._lines.write(json.dumps(request) + "\n")
            self._lines.flush()
            line = self._lines.readline()
        except TimeoutError:
            raise Lost(
                "the copy of the script's process did not respond in time and was stopped; use a larger --budget"
            ) from None
        except (OSError, ValueError):
            line = ""
        if not line:
            raise Lost("the copy of the script's process died while it measured")
        answer: dict[str, Any] = json.loads(line)
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer

    def close(self) -> None:
        """Stops the copy, which is a session leader, and its loaders' workers."""
        with contextlib.suppress(OSError):
            if os.getpgid(self._pid) == self._pid:
                os.killpg(self._pid, signal.SIGKILL)
        with contextlib.suppress(OSError, ValueError):
            self._lines.close()
        self._connection.close()


def limits_of(options: Options, facts: dict[str, Any]) -> Limits:
    """Returns the limits. `facts` are from the script's process, which, unlike this process, may be one of several
    ranks.
    """
    cpus = min(options.cpus or facts["cpus"], facts["usable_cpus"])
    memory = options.memory or facts["memory"] // _MEMORY_SHARE
    with contextlib.suppress(OSError):  # torch's workers transfer batches through it
        status = os.statvfs("/dev/shm")
        memory = min(memory, int(_SHARED_MEMORY_SHARE * status.f_bavail * status.f_frsize))
    most = max(_MOST_WORKERS_PER_CPU * cpus, min(facts["setting"]["num_workers"], _MOST_WORKERS))
    return Limits(cpus, memory, most, options.batch_sizes, bool(facts.get("gpu")))


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Stops a process group and its leader by SIGINT, then SIGTERM, then SIGKILL."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S / 2)
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def ending_on_signals() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP end this process, and all processes that it has started, as Ctrl-C does."""

    def end(number: int, _frame: Any) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _refusal(folder: Path) -> str | None:
    for path in folder.glob("*.note"):
        with contextlib.suppress(OSError):
            for line in path.read_text().splitlines():
                if line.startswith("no copy: "):
                    return line.removeprefix("no copy: ")
    return None


def _has_clone(folder: Path) -> bool:
    """Whether a forked copy is still running. Uses the process ID in the copy's file, because the copy's arguments do
    not contain the folder's name.
    """
    with contextlib.suppress(OSError, ValueError):
        return Path("/proc", (folder / process_copies.PID).read_text()).exists()
    return False
