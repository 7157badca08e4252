# SPDX-License-Identifier: Apache-2.0
"""Collects the evidence of a crash: errors that the probe recorded, stacks, and the kernel's counters of kills."""

from __future__ import annotations

import contextlib
import json
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedline import _engine
from feedline.machine.kernel_log import KernelLog
from feedline.machine.system_files import SystemFiles
from feedline.profiler.probe.failures import STACK, SUFFIX

# Signals that no user or scheduler sends to end a run normally.
FATAL = tuple(
    getattr(signal, name)
    for name in ("SIGKILL", "SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP")
)
_SHELL = 128  # a shell reports a signal as this plus its number
_ENDED_BY_USER = ("KeyboardInterrupt", "SystemExit")
_LONGEST_STACK = 20_000
_TOLD = re.compile(r"DataLoader worker \(pid\(?s?\)? (\d+)\) is killed by signal: ([^.]+)\.")
_EXITED = re.compile(r"DataLoader worker \(pid\(?s?\)? (\d+)\) exited unexpectedly with exit code (\d+)")
_LAUNCHED = re.compile(r"exitcode\s*: (-?\d+) \(pid: (\d+)\)")  # torchrun


@dataclass(frozen=True)
class Dead:
    """A process that ended abnormally. `exit` is negative for a signal, as in subprocess."""

    pid: int | None
    role: str  # "worker", "rank" or "command"
    exit: int
    worker: int | None = None

    @property
    def name(self) -> str:
        pid = "" if self.pid is None else f"pid {self.pid}"
        if self.role == "worker" and self.worker is not None:
            return f"worker {self.worker} ({pid})"
        if self.role == "command":
            return f"the command's process ({pid})" if pid else "the command"
        return f"a {self.role} ({pid})"


@dataclass
class Crash:
    """The evidence about the end of a run.

    Attributes:
        failures: errors recorded by the probe; see probe/failures.py.
        dead: processes that ended abnormally; those killed by a signal first.
        stacks: the Python stacks of processes that received a fatal signal, by process id.
        cgroup_kills: out-of-memory kills in this process's cgroup during the run; None if not readable.
        host_kills: out-of-memory kills on the machine during the run; None if not readable.
        kernel: messages of the kernel about killed processes during the run.
        unseen: reasons why evidence is missing, one sentence each.
        shared_bytes: size of /dev/shm; None if unknown.
        memory_limit_bytes: the memory limit of the cgroup; None if there is none.
    """

    failures: list[dict[str, Any]] = field(default_factory=list)
    dead: list[Dead] = field(default_factory=list)
    stacks: dict[int, str] = field(default_factory=dict)
    cgroup_kills: int | None = None
    host_kills: int | None = None
    kernel: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    shared_bytes: int | None = None
    memory_limit_bytes: int | None = None

    @property
    def fatal(self) -> list[dict[str, Any]]:
        """The errors other than an interruption by the user, those that ended a process first."""
        errors = [one for one in self.failures if name_of(one) not in _ENDED_BY_USER]
        return sorted(errors, key=lambda one: (not one.get("fatal"), one.get("time_ns", 0)))

    def ended(self, returncode: int) -> bool:
        """Whether a command with this exit status crashed, rather than ended by itself or by a user's signal."""
        if signal_of(returncode) in FATAL:
            return True
        return returncode > 0 and any(one.get("fatal") for one in self.fatal)


def signal_of(returncode: int) -> int | None:
    """Returns the signal that an exit status reports, directly or through a shell, or None."""
    number = -returncode if returncode < 0 else returncode - _SHELL
    return number if number in signal.valid_signals() else None


def name_of(failure: dict[str, Any]) -> str:
    causes = failure.get("causes") or [{}]
    return str(causes[0].get("error", ""))


class CrashWatch:
    """Notes the kernel's counters when a run begins. Must be closed."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = SystemFiles(root)
        self._log = KernelLog(root)
        self._cgroup, self._host = self._cgroup_kills(), self._host_kills()

    def close(self) -> None:
        self._log.close()

    def collect(self, folder: Path, returncode: int, pid: int | None = None) -> Crash:
        """Returns the evidence at the end of a run. `pid`: the command's process."""
        failures = list(_failures(folder))
        cgroup, host = self._cgroup_kills(), self._host_kills()
        unseen = [self._log.refused] if self._log.refused else []
        if cgroup is None or self._cgroup is None:
            unseen.append("the cgroup has no readable counter of out-of-memory kills (memory.events)")
        if host is None or self._host is None:
            unseen.append("/proc/vmstat has no counter of out-of-memory kills")
        space = self._root.space("dev/shm")
        return Crash(
            failures,
            self.dead_of(failures, returncode, pid),
            dict(_stacks(folder)),
            _growth(self._cgroup, cgroup),
            _growth(self._host, host),
            self._log.kills(),
            tuple(unseen),
            None if space is None else space.total_bytes,
            self._limit(),
        )

    @staticmethod
    def dead_of(failures: list[dict[str, Any]], returncode: int, pid: int | None = None) -> list[Dead]:
        """Returns the processes that ended abnormally, those killed by a signal first."""
        return sorted(_dead(failures, returncode, pid), key=lambda one: one.exit >= 0)

    def _cgroup_kills(self) -> int | None:
        try:
            return _engine.memory_limits(self._root.for_engine).oom_kills
        except Exception:
            return None

    def _limit(self) -> int | None:
        try:
            return _engine.memory_limits(self._root.for_engine).binding_bytes
        except Exception:
            return None

    def _host_kills(self) -> int | None:
        found = re.search(r"^oom_kill (\d+)$", self._root.text("proc/vmstat") or "", re.MULTILINE)
        return int(found[1]) if found else None


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(after - before, 0)


def _dead(failures: list[dict[str, Any]], returncode: int, pid: int | None) -> Iterator[Dead]:
    """Yields the dead processes that the errors name, each once, and the command itself if a signal ended it."""
    named: set[int] = set()
    for failure in failures:
        for worker in failure.get("workers") or ():
            if worker.get("exit") not in (None, 0) and worker.get("pid") not in named:
                named.add(worker["pid"])
                yield Dead(worker["pid"], "worker", worker["exit"], worker.get("worker"))
    for failure in failures:
        for cause in failure["causes"]:
            text = str(cause.get("message", ""))
            for number, name in _TOLD.findall(text):
                if int(number) not in named and (found := _signal_named(name)) is not None:
                    named.add(int(number))
                    yield Dead(int(number), "worker", -found)
            for number, status in _EXITED.findall(text):
                if int(number) not in named and int(status):
                    named.add(int(number))
                    yield Dead(int(number), "worker", int(status))
            if "ChildFailedError" in str(cause.get("error")):
                for status, number in _LAUNCHED.findall(text):
                    if int(number) not in named:
                        named.add(int(number))
                        yield Dead(int(number), "rank", int(status))
    number = signal_of(returncode)
    if number in FATAL and pid not in named:
        yield Dead(pid, "command", -int(number or 0))


def _failures(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the readable failures. Any process of the script can write such a file, so its form is checked."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(path.read_text())
            causes = found.get("causes") if isinstance(found, dict) else None
            if isinstance(causes, list) and causes and all(isinstance(cause, dict) for cause in causes):
                yield found


def _signal_named(text: str) -> int | None:
    """Returns the signal with this description, such as "Bus error"."""
    for number in signal.valid_signals():
        if signal.strsignal(number) == text.strip():
            return int(number)
    return None


def _stacks(folder: Path) -> Iterator[tuple[int, str]]:
    for path in folder.glob(f"*{STACK}"):
        with contextlib.suppress(OSError, ValueError):
            with open(path, errors="replace") as file:
                text = file.read(_LONGEST_STACK)
            if text.strip():
                yield int(path.name.split(".")[0]), text
