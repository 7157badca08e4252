# SPDX-License-Identifier: Apache-2.0
"""Records the files that samples are read from, using Python's audit event for open() in the profiled processes.

The hook does not see files opened by native code; files that stay open are found in /proc.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
from pathlib import Path
from time import perf_counter_ns as clock
from time import thread_time_ns as cpu_clock
from typing import Any, Protocol

from feedline import _engine
from feedline.profiler.probe.budget import Local
from feedline.profiler.probe.events import HEARD

SUFFIX = ".files"
_TOLD = 64  # opens per report to the recorder
# The first opens of a process are recorded, then every second open for the same number, every fourth, and so on.
_EACH = 32
_KEPT, _KEPT_NS = 8, 100_000_000  # number of names per write; also written after a recorded batch
_CODE = (".py", ".pyc", ".pyi", ".so")
_SYSTEM = ("/proc/", "/sys/", "/dev/")


class Collector(Protocol):
    def add(self, path: str, /) -> None: ...


class Recorder(Protocol):
    """Called with the number of opened files, and the cost of recording them."""

    session: Path
    silent: bool
    in_worker: bool
    local: Local

    def record(self, kind: int, begin_ns: int, cpu_ns: int, a: int, b: int, keep: bool, /) -> None: ...

    def paid(self, took_ns: int, /) -> int: ...


class OpenedFiles:
    """The audit hook of one process and its forks. Never raises, as an exception would make the script's open()
    fail.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._gate = _engine.OpenGate(self._hear)  # the cost of most opens: only its counter
        self._collected: Collector | None = None
        self.restart()

    def restart(self) -> None:
        """Resets the state in a new process."""
        self._gate.passing = self._written = self._spent_ns = 0
        self._passed = self._told = 0  # opens to skip, and opens that were reported to the recorder
        self._kept: list[str] = []
        self._wrote_ns = 0

    def listen(self) -> None:
        sys.addaudithook(self._gate.hook)

    @property
    def collected(self) -> Collector | None:
        """The set to which opened paths are added if a copy of the process collects the paths itself."""
        return self._collected

    @collected.setter
    def collected(self, collector: Collector | None) -> None:
        self._collected = collector
        self._gate.passing = 0

    def _hear(self, arguments: tuple[Any, ...]) -> None:
        with contextlib.suppress(Exception):
            recorder = self._recorder
            if self._collected is None and not (recorder.in_worker or recorder.local.in_next):
                return
            path, _mode, flags = arguments
            if not isinstance(path, int) and flags & os.O_ACCMODE == os.O_RDONLY:
                self._take(os.fsdecode(path))

    def _take(self, path: str) -> None:
        if path.endswith(_CODE) or path.startswith(_SYSTEM):
            return
        if self._collected is not None:
            self._collected.add(os.path.abspath(path))
        elif not self._recorder.silent:
            begin = cpu_clock()
            self._written += 1
            passing = self._gate.passing = (1 << self._written // _EACH) - 1
            self._passed += passing
            self._kept.append(path if _is_plain(path) else os.path.abspath(path))
            self._spent_ns += cpu_clock() - begin
            if self._written == 1 or len(self._kept) >= _KEPT:
                self.write()

    def tell(self) -> None:
        """Writes the recorded names, and reports new opens to the recorder if enough have accumulated."""
        if clock() - self._wrote_ns > _KEPT_NS:
            self.write()
        heard = self._passed - self._gate.passing + self._written
        if heard - self._told >= _TOLD:
            self._recorder.record(HEARD, clock(), 0, heard - self._told, 0, False)
            self._told = heard
            self._recorder.paid(self._spent_ns)
            self._spent_ns = 0

    def write(self) -> None:
        """Writes the recorded names that are not written yet."""
        if self._kept:
            begin = cpu_clock()
            with contextlib.suppress(Exception):
                self._append()
            self._spent_ns += cpu_clock() - begin

    def _append(self) -> None:
        lines, self._kept, self._wrote_ns = self._kept, [], clock()
        name = f"{self._recorder.session}/{os.getpid()}{SUFFIX}"
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, "".join(json.dumps(path) + "\n" for path in lines).encode())
        finally:
            os.close(file)


def _is_plain(path: str) -> bool:
    """Whether the path is already in the form that abspath() returns; this check is faster than abspath()."""
    return path.startswith("/") and "/." not in path and "//" not in path


def open_for_reading() -> set[str]:
    """Returns the files that this process has open read-only, excluding code."""
    paths = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            path = os.readlink(f"/proc/self/fd/{number}")
            reads = fcntl.fcntl(int(number), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
            if reads and os.path.isfile(path) and not path.endswith(_CODE):
                paths.add(path)
    return paths
