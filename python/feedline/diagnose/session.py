# SPDX-License-Identifier: Apache-2.0
"""Runs a command with the probe on its path, samples its process tree, and collects what its processes recorded.

The command keeps its standard streams, arguments, working directory and exit status; two variables of its environment
are added to: PYTHONPATH and FEEDLINE_DIAGNOSE_SESSION.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedline import _engine
from feedline.diagnose import apply
from feedline.diagnose.dataset_files import DatasetFiles, FilesWatch, names_in
from feedline.diagnose.experiments import clones, results
from feedline.diagnose.experiments.intervals import rate_interval
from feedline.diagnose.experiments.results import Ceiling, Experiments
from feedline.diagnose.probe.events import LOOPS, STEP, Event, Total, total_of
from feedline.diagnose.probe.seen_waits import SUFFIX

SESSION = "FEEDLINE_DIAGNOSE_SESSION"
_PACKAGE = Path(__file__).resolve().parents[1]
_PERIOD_S = 0.1
_FIRST_LOOK_S, _HARVEST_S = 0.25, 2.0
_CACHED, _FROM_DEVICE = 0.5, 0.3
_KEPT_PROCESSES = 256  # whose events are kept after they ended; of earlier ones the totals remain
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@dataclass
class ProcessRecord:
    """One process of the command that had a loop or was a worker."""

    pid: int
    parent: int
    created_ns: int
    events: list[Event]
    totals: dict[int, Total]
    names: dict[int, str] = field(default_factory=dict)


@dataclass
class Recording:
    """Everything that was seen of a run."""

    command: list[str]
    returncode: int  # as subprocess has it: negative for a signal
    begin_ns: int
    end_ns: int
    processes: list[ProcessRecord]
    loaders: list[dict[str, Any]]
    host: dict[str, Any]
    notes: list[str]
    pythons: int  # Python processes in which the probe's first lines ran
    dropped: int = 0  # processes whose events were let go, as there were too many
    experiments: Experiments | None = None
    devices: list[dict[str, Any]] = field(default_factory=list)  # that processes used, as they told last
    files: DatasetFiles | None = None
    applied: list[dict[str, Any]] = field(default_factory=list)  # what became of other settings, by loader
    waits: list[dict[str, Any]] = field(default_factory=list)  # what makers of batches waited for, by process
    watcher_cpu_ns: int = 0  # of this process while the command ran: sampling, and looking after event files


@dataclass(frozen=True)
class Change:
    """Settings that a script's loader is to be given while it runs."""

    settings: Mapping[str, Any]
    loader: Mapping[str, Any]  # facts of the one that is meant


class CommandError(OSError):
    """The command could not be started."""


def run(
    command: Sequence[str],
    budget: float = 0.0,
    change: Change | None = None,
    tell: Callable[[str, float], None] = lambda _what, _left_s: None,
) -> Recording:
    """Runs `command` to its end, and then experiments for up to `budget` seconds; 0: none. None, too, where the command
    was interrupted: whoever wanted it to end is not kept waiting. `tell` hears how experiments get on.

    With `change` what it prints goes to standard error: it is not the run that was asked for. Raises CommandError where
    it cannot be started.
    """
    folder = Path(tempfile.mkdtemp(prefix="feedline-diagnose-"))
    harvest = _Harvest(folder)
    try:
        (folder / clones.WATCHER).write_text(str(os.getpid()))
        begin = time.perf_counter_ns()
        with _signals_of_child() as forward:
            child = _start(command, folder, budget, change)
            forward.children.append(child)
            watching = time.process_time_ns()
            sampler = _sampler(child.pid, folder)
            harvest.start()
            returncode = child.wait()
            end, watching = time.perf_counter_ns(), time.process_time_ns() - watching
        harvest.stop()
        host: dict[str, Any] = {}
        if sampler is not None:
            sampler.stop()
            host = sampler.record()
        files = harvest.files.finish(host.get("files", []))
        processes = harvest.processes()
        devices, seen = _json_files(folder, "*.device"), harvest.files.summary(files)
        tried = None
        if budget > 0 and processes and not forward.interrupted:
            cold = _read_from_disk(host, seen)
            tried = results.run(folder, budget, _ceiling(processes), files, devices, cold, tell)
        notes = ["no experiments were made, as it was interrupted"] if budget > 0 and forward.interrupted else []
        return Recording(
            list(command),
            returncode,
            begin,
            end,
            processes,
            _json_files(folder, "*.loader"),
            host,
            notes + _notes(folder) + list(host.get("unseen", [])) + list(host.get("gpu_notes", [])),
            len(list(folder.glob("*.note"))),
            harvest.dropped,
            tried,
            devices,
            seen,
            apply.outcome(folder) if change is not None else [],
            _json_files(folder, f"*{SUFFIX}"),
            watching,
        )
    finally:
        with results.undisturbed():
            results.end_the_copy(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _read_from_disk(host: Mapping[str, Any], files: DatasetFiles | None) -> bool:
    """Whether most of the data set's files were not in the page cache, and much of what was read came from disks."""
    if files is None or files.cached_before is None or files.cached_before > _CACHED:
        return False
    last = {row["pid"]: row for row in host.get("processes", [])}
    read, device = (sum(row[name] for row in last.values()) for name in ("read_bytes", "device_bytes"))
    return bool(device > _FROM_DEVICE * read)


def _ceiling(processes: Sequence[ProcessRecord]) -> Ceiling | None:
    """Of the process whose steps take most of the time."""
    steps = max(([e for e in p.events if e.kind == STEP] for p in processes), key=lambda s: sum(e.wall_ns for e in s))
    done, seconds = [(0.0, 0.0)], 0.0
    for step in steps:  # laid end to end: as if no batch were waited for
        seconds += step.wall_ns / 1e9
        done.append((seconds, 1.0))
    if len(done) < 3 or seconds <= 0:
        return None
    return Ceiling(*rate_interval(done), steps=len(steps))


def so_far(folder: Path, command: Sequence[str], begin_ns: int, host: dict[str, Any]) -> Recording:
    """What the processes of a command have recorded in `folder`, though it may still run; what is taken is gone there.

    `host`: a sampler's record.
    """
    harvest, end_ns = _Harvest(folder), time.perf_counter_ns()
    processes, loaders = harvest.processes(), _json_files(folder, "*.loader")
    pythons = len(list(folder.glob("*.note")))
    return Recording(list(command), 0, begin_ns, end_ns, processes, loaders, host, _notes(folder), pythons)


def environment_of(folder: Path, budget: float) -> dict[str, str]:
    """This process's environment, with the probe that records into `folder` in it."""
    environment = dict(os.environ)
    paths = [str(_PACKAGE / "diagnose" / "probe" / "inject")]
    if environment.get("PYTHONPATH"):
        paths.append(environment["PYTHONPATH"])
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment[SESSION] = str(folder)
    environment[clones.BUDGET] = str(budget)
    return environment


def _start(command: Sequence[str], folder: Path, budget: float, change: Change | None) -> subprocess.Popen[bytes]:
    environment = environment_of(folder, budget)
    try:
        if change is None:
            return subprocess.Popen(list(command), env=environment)
        environment |= apply.request(folder, change.settings, change.loader)
        return subprocess.Popen(list(command), env=environment, stdin=subprocess.DEVNULL, stdout=2)
    except OSError as error:
        raise CommandError(error.errno, f"cannot start {command[0]}: {error.strerror}") from error


def _sampler(pid: int, folder: Path) -> _engine.HostSampler | None:
    try:
        return _engine.HostSampler(pid, _PERIOD_S, closely_from=str(folder / LOOPS))
    except Exception:  # the diagnosis goes without; it says so
        return None


@dataclass
class _Forwarding:
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    interrupted: bool = False


@contextlib.contextmanager
def _signals_of_child() -> Iterator[_Forwarding]:
    """Signals meant for the script reach it; a terminal's Ctrl-C reaches it by itself."""
    forwarding = _Forwarding()

    def forward(number: int, _frame: Any) -> None:
        forwarding.interrupted |= number == signal.SIGINT
        for child in forwarding.children:
            with contextlib.suppress(OSError):
                child.send_signal(number)

    def reached_by_terminal(_number: int, _frame: Any) -> None:
        forwarding.interrupted = True

    if threading.current_thread() is not threading.main_thread():
        yield forwarding
        return
    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    # a handler of ours, unlike SIG_IGN, does not pass to the child
    by_terminal = _has_terminal()
    before[signal.SIGINT] = signal.signal(signal.SIGINT, reached_by_terminal if by_terminal else forward)
    try:
        yield forwarding
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


class _Harvest:
    """Takes the events of processes that have ended, so that their files do not pile up over days."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ended: deque[ProcessRecord] = deque(maxlen=_KEPT_PROCESSES)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feedline-harvest", daemon=True)
        self.dropped = 0
        self.files = FilesWatch(folder)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        pause = _FIRST_LOOK_S  # what the cache held before is told by files that are not read yet
        while not self._stop.wait(pause):
            pause = min(2 * pause, _HARVEST_S)
            names = names_in(self._folder)
            self.files.look(names)
            rings = self._rings(names)
            if len(rings) <= _KEPT_PROCESSES // 4:
                continue
            for path in rings:
                if not _is_alive(int(path.name.split(".")[0])):
                    self._take(path)

    def _rings(self, names: Iterable[str]) -> list[Path]:
        rings = [name for name in names if name.endswith(".ring")]
        return [self._folder / name for name in sorted(rings, key=lambda name: int(name.split(".")[1]))]

    def _take(self, path: Path) -> None:
        with contextlib.suppress(Exception):  # one that was killed while it made the file
            raw = _engine.read_events(str(path))
            names = _json_file(self._folder / f"{raw['pid']}.names")
            self.dropped += len(self._ended) == _KEPT_PROCESSES
            self._ended.append(
                ProcessRecord(
                    raw["pid"],
                    raw["parent"],
                    raw["created_ns"],
                    [Event(*event) for event in raw["events"]],
                    {kind: total_of(total) for kind, total in raw["totals"].items()},
                    {int(kind): str(name) for kind, name in (names or {}).items()},
                )
            )
        path.unlink(missing_ok=True)

    def processes(self) -> list[ProcessRecord]:
        for path in self._rings(names_in(self._folder)):
            self._take(path)
        return list(self._ended)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _json_file(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _json_files(folder: Path, pattern: str) -> list[dict[str, Any]]:
    found = (_json_file(path) for path in sorted(folder.glob(pattern)))
    return [value for value in found if value is not None]


def _notes(folder: Path) -> list[str]:
    notes = []
    for path in sorted(folder.glob("*.note")):
        with contextlib.suppress(OSError):
            notes += [line for line in path.read_text().splitlines() if line]
    return notes[:50]
