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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedline import _engine
from feedline.diagnose import clones, experiments
from feedline.diagnose.events import Event, Total, total_of
from feedline.diagnose.experiments import Experiments

SESSION = "FEEDLINE_DIAGNOSE_SESSION"
_PACKAGE = Path(__file__).resolve().parents[1]
_PERIOD_S = 0.1
_HARVEST_S = 2.0
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
    shared_memory_used: float | None = None  # largest share of /dev/shm that was in use
    experiments: Experiments | None = None


class CommandError(OSError):
    """The command could not be started."""


def run(command: Sequence[str], budget: float = 0.0) -> Recording:
    """Runs `command` to its end, and then experiments for up to `budget` seconds; 0: none.

    Raises CommandError where it cannot be started.
    """
    folder = Path(tempfile.mkdtemp(prefix="feedline-diagnose-"))
    harvest = _Harvest(folder)
    try:
        (folder / clones.WATCHER).write_text(str(os.getpid()))
        begin = time.perf_counter_ns()
        with _signals_of_child() as forward:
            child = _start(command, folder, budget)
            forward.append(child)
            sampler = _sampler(child.pid)
            harvest.start()
            returncode = child.wait()
            end = time.perf_counter_ns()
        harvest.stop()
        host: dict[str, Any] = {}
        if sampler is not None:
            sampler.stop()
            host = sampler.record()
        tried = experiments.run(folder, budget) if budget > 0 else None
        return Recording(
            list(command),
            returncode,
            begin,
            end,
            harvest.processes(),
            _json_files(folder, "*.loader"),
            host,
            _notes(folder) + list(host.get("unseen", [])),
            len(list(folder.glob("*.note"))),
            harvest.dropped,
            harvest.shared_memory_used,
            tried,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
    paths = [str(_PACKAGE / "diagnose" / "inject")]
    if environment.get("PYTHONPATH"):
        paths.append(environment["PYTHONPATH"])
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment[SESSION] = str(folder)
    environment[clones.BUDGET] = str(budget)
    return environment


def _start(command: Sequence[str], folder: Path, budget: float) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(list(command), env=environment_of(folder, budget))
    except OSError as error:
        raise CommandError(error.errno, f"cannot start {command[0]}: {error.strerror}") from error


def _sampler(pid: int) -> _engine.HostSampler | None:
    try:
        return _engine.HostSampler(pid, _PERIOD_S)
    except Exception:  # the diagnosis goes without; it says so
        return None


@contextlib.contextmanager
def _signals_of_child() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Signals meant for the script reach it; a terminal's Ctrl-C reaches it by itself."""
    children: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _frame: Any) -> None:
        for child in children:
            with contextlib.suppress(OSError):
                child.send_signal(number)

    if threading.current_thread() is not threading.main_thread():
        yield children
        return
    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    # a handler of ours, unlike SIG_IGN, does not pass to the child
    by_terminal = _has_terminal()
    before[signal.SIGINT] = signal.signal(signal.SIGINT, (lambda _number, _frame: None) if by_terminal else forward)
    try:
        yield children
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
        self.shared_memory_used: float | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_HARVEST_S):
            self._look_at_shared_memory()
            rings = self._rings()
            if len(rings) <= _KEPT_PROCESSES // 4:
                continue
            for path in rings:
                if not _is_alive(int(path.name.split(".")[0])):
                    self._take(path)

    def _look_at_shared_memory(self) -> None:
        with contextlib.suppress(OSError):
            status = os.statvfs("/dev/shm")
            if status.f_blocks:
                self.shared_memory_used = max(self.shared_memory_used or 0.0, 1 - status.f_bavail / status.f_blocks)

    def _rings(self) -> list[Path]:
        return sorted(self._folder.glob("*.ring"), key=lambda path: int(path.name.split(".")[1]))

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
        for path in self._rings():
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
