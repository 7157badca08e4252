# SPDX-License-Identifier: Apache-2.0
"""The evidence about a run that died, as the rules in `deaths` read it, and the interface of such a rule."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from feedline.findings import Entry, Threshold
from feedline.profiler.crashes import Crash, Dead
from feedline.profiler.recordings import Recording

SHM_FULL = Threshold(0.9, "peak use of /dev/shm, as a fraction, above which another batch may not fit")
_FRAME = re.compile(r'File "([^"]+)", line (\d+),? in (\S+)')
_WORKER = re.compile(r"in DataLoader worker process (\d+)")
_LIBRARIES = ("site-packages", "dist-packages", "/lib/python3", "<frozen", "feedline/profiler")


@dataclass(frozen=True)
class Raised:
    """An error of the script. `place`: the script's line, such as "train.py:9 in __getitem__()", or "". `worker`: the
    number of the worker that raised the error, or None.
    """

    error: str  # the qualified name of its class
    message: str
    place: str
    worker: int | None
    is_of_loop: bool  # raised by the loader, rather than by other code
    settings: Mapping[str, Any]  # the loader's, if creating its iterator failed

    @property
    def name(self) -> str:
        """The class without its module, as Python's tracebacks show it for built-in errors."""
        return self.error.rpartition(".")[2]

    @property
    def summary(self) -> str:
        """The last line of the message, which states the problem even if the message contains a worker's traceback."""
        lines = [line.strip() for line in self.message.splitlines() if line.strip()]
        last = lines[-1] if lines else ""
        return last if last.startswith(self.name) or _WORKER.search(self.message) else f"{self.name}: {last}"

    @property
    def where(self) -> str:
        at = f" at {self.place}" if self.place else ""
        return f"{at} in worker {self.worker}" if self.worker is not None else at


@dataclass(frozen=True)
class DeadRun:
    """The evidence about a run. `loaders`: the settings of its loaders; `host`: the sampler's record."""

    crash: Crash
    returncode: int
    host: Mapping[str, Any] = field(default_factory=dict)
    loaders: tuple[Mapping[str, Any], ...] = ()

    def errors(self) -> Iterator[Raised]:
        """Yields the errors and their causes, those that ended a process first."""
        for failure in self.crash.fatal:
            for cause in failure["causes"]:
                yield _raised(failure, cause)

    def error(self, pattern: str, *names: str) -> Raised | None:
        """Returns the first error with one of these class names, or whose message matches `pattern`."""
        compiled = re.compile(pattern, re.IGNORECASE)
        return next((one for one in self.errors() if one.name in names or compiled.search(one.message)), None)

    def has_number(self, errno: int) -> bool:
        """Whether an error has this `errno` of the operating system."""
        return any(failure.get("errno") == errno for failure in self.crash.fatal)

    def killed_by(self, *signals: int) -> list[Dead]:
        return [one for one in self.crash.dead if -one.exit in signals]

    def setting(self, name: str) -> Any:
        """Returns a setting of the loader with the most workers, or None."""
        failed = [one["loader"] for one in self.crash.failures if isinstance(one.get("loader"), dict)]
        known = [one for one in (*failed, *self.loaders) if one.get(name) is not None]
        return max(known, key=lambda one: one.get("num_workers") or 0)[name] if known else None

    def shared_peak(self) -> float | None:
        """Returns the peak use of /dev/shm during the run, as a fraction."""
        rows = (row.get("shared_memory_used") for row in self.host.get("host", ()))
        return max((used for used in rows if used is not None), default=None)

    def memory_peak(self) -> int | None:
        """Returns the peak memory of the run's processes, in bytes."""
        return max((int(row["bytes"]) for row in self.host.get("memory", ())), default=None)

    def stack_of(self, dead: Dead) -> list[tuple[str, int, str]]:
        """Returns the (file, line, function) of a dead process's Python stack, innermost first; empty if unknown."""
        text = self.crash.stacks.get(dead.pid or 0, "")
        return [(file, int(line), function) for file, line, function in _FRAME.findall(text)]

    def stack_sentences(self, dead: Dead) -> list[str]:
        """Describes the code that a dead process was executing."""
        stack = self.stack_of(dead)
        if not stack:
            return []
        own = next((frame for frame in stack if not any(part in frame[0] for part in _LIBRARIES)), stack[0])
        inside = "" if own == stack[0] else f", in {_short(stack[0])}"
        return [f"its Python stack ends at {_short(own)}{inside}"]

    def kernel_sentences(self) -> list[str]:
        return [f"the kernel's log: {line}" for line in self.crash.kernel[:3]]


@dataclass(frozen=True)
class Died:
    """The result of a rule.

    Attributes:
        what: the event, without "the run died:" and without a full stop.
        evidence: sentences that support it.
        fixes: the fixes to try, cheapest first; None for the page's text.
    """

    what: str
    evidence: tuple[str, ...]
    fixes: tuple[str, ...]


@dataclass(frozen=True)
class Death:
    """A cause of a run's death. The rule with the lowest `priority` that applies determines the cause."""

    page: Entry
    priority: int
    evaluate: Callable[[DeadRun], Died | None]


def of_recording(recording: Recording) -> DeadRun:
    return DeadRun(recording.crash, recording.returncode, recording.host, tuple(recording.loaders))


def page(code: str, title: str, *, means: str, recognised: str, to_do: str, example: str, abstains: str = "") -> Entry:
    return Entry(code, "diagnose", title, means, recognised, to_do, abstains, example)


def signal_name(dead: Dead) -> str:
    return signal.Signals(-dead.exit).name if -dead.exit in signal.valid_signals() else f"signal {-dead.exit}"


def gb(count: int) -> str:
    return f"{count / 1e9:.3g} GB"


def memory_fixes(run: DeadRun) -> tuple[str, ...]:
    """Returns the fixes for exhausted memory, cheapest first."""
    depth, workers, batch = (run.setting(name) for name in ("prefetch_factor", "num_workers", "batch_size"))
    fixes = []
    if workers != 0:
        if depth != 1:
            fixes.append(f"Set prefetch_factor=1{f' instead of {depth}' if depth else ''}.")
        fewer = f"num_workers={max(workers // 2, 1)} instead of {workers}" if (workers or 0) > 1 else "fewer workers"
        if workers != 1:
            fixes.append(f"Use {fewer}: each worker holds its batches and copies of the dataset.")
    fixes.append(f"Use a smaller batch_size{f' than {batch}' if batch else ''}.")
    fixes.append(
        "Read samples when they are needed instead of holding the dataset in memory: memory-mapped files, or packed "
        "shards that are streamed (`feedline pack`)."
    )
    fixes.append(
        "Do not keep a growing list or cache in the dataset, or batches or losses with their graphs in the loop."
    )
    fixes.append("Raise the limit: memory of the job or container (`docker run --memory`).")
    return tuple(fixes)


def shm_fixes(run: DeadRun) -> tuple[str, ...]:
    """Returns the fix for a full /dev/shm."""
    depth, workers = run.setting("prefetch_factor"), run.setting("num_workers")
    now = f" (now {workers} workers x {depth} batches)" if workers and depth else ""
    return (
        "Enlarge /dev/shm: `docker run --shm-size=8g` or `--ipc=host`; in Kubernetes, mount an emptyDir with "
        "medium: Memory at /dev/shm.",
        f"If it cannot be enlarged, keep fewer batches in flight: a smaller prefetch_factor, then fewer workers{now}.",
        "Remove files that killed runs left in /dev/shm: `feedline doctor --clean`.",
    )


def raised_text(error: Raised) -> str:
    """Describes an error in one sentence of evidence."""
    return f"{error.summary[:300]}{' (raised' + error.where + ')' if error.where else ''}"


def _raised(failure: Mapping[str, Any], cause: Mapping[str, Any]) -> Raised:
    message = str(cause.get("message", ""))
    worker = _WORKER.search(message)
    place = str(failure.get("place", ""))
    if worker is not None:
        place = _place_in(message)
    settings = failure.get("loader")
    return Raised(
        str(cause.get("error", "")),
        message,
        place,
        int(worker[1]) if worker else None,
        failure.get("role") == "loop" or worker is not None,
        settings if isinstance(settings, dict) else {},
    )


def _place_in(text: str) -> str:
    """Returns the innermost line of the script in the text of a traceback."""
    frames = [
        (file, int(line), function)
        for file, line, function in _FRAME.findall(text)
        if not any(part in file for part in _LIBRARIES)
    ]
    return _short(frames[-1]) if frames else ""


def _short(frame: tuple[str, int, str]) -> str:
    file, line, function = frame
    return f"{file.rpartition('/')[2]}:{line} in {function}()"
