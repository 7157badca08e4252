# SPDX-License-Identifier: Apache-2.0
"""Which files samples are read from: noted in the watched processes, told by Python's audit event of open().

Files that native code opens by itself are not heard of; those that stay open are seen from outside, in /proc.
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
from feedline.watching.probe.allowance import Local
from feedline.watching.probe.events import HEARD

SUFFIX = ".files"
_TOLD = 64  # opens that the recorder is told of at a time
_EACH = 32  # the first so many of a process are noted; then every second one for as many, every fourth, and so on
_KEPT, _KEPT_NS = 8, 100_000_000  # so many names are written at a time, or what there is after a batch that was seen
_CODE = (".py", ".pyc", ".pyi", ".so")
_SYSTEM = ("/proc/", "/sys/", "/dev/")


class Collector(Protocol):
    def add(self, path: str, /) -> None: ...


class Recorder(Protocol):
    """Receives how many files were opened, and what noting them cost."""

    session: Path
    silent: bool
    in_worker: bool
    local: Local

    def record(self, kind: int, begin_ns: int, cpu_ns: int, a: int, b: int, keep: bool, /) -> None: ...

    def paid(self, took_ns: int, /) -> int: ...


class OpenedFiles:
    """The audit hook of one process and of those that it forks. Never raises: that would stop the script's open()."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._gate = _engine.OpenGate(self._hear)  # what most opens cost: nothing but its counter
        self._collected: Collector | None = None
        self.restart()

    def restart(self) -> None:
        """In a process of its own."""
        self._gate.passing = self._written = self._spent_ns = 0
        self._passed = self._told = 0  # opens that were to go by unheard, and opens that the recorder was told of
        self._kept: list[str] = []
        self._wrote_ns = 0

    def listen(self) -> None:
        sys.addaudithook(self._gate.hook)

    @property
    def collected(self) -> Collector | None:
        """Where a copy of the process collects them itself."""
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
        """Writes what was noted, and has the recorder count what it was not told of yet, if that is more than a few."""
        if clock() - self._wrote_ns > _KEPT_NS:
            self.write()
        heard = self._passed - self._gate.passing + self._written
        if heard - self._told >= _TOLD:
            self._recorder.record(HEARD, clock(), 0, heard - self._told, 0, False)
            self._told = heard
            self._recorder.paid(self._spent_ns)
            self._spent_ns = 0

    def write(self) -> None:
        """What was noted and is not written yet."""
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
    """Absolute, as abspath() would leave it, which takes longer than to look."""
    return path.startswith("/") and "/." not in path and "//" not in path


def open_for_reading() -> set[str]:
    """Files, but for code, that this process has open and only reads."""
    paths = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            path = os.readlink(f"/proc/self/fd/{number}")
            reads = fcntl.fcntl(int(number), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
            if reads and os.path.isfile(path) and not path.endswith(_CODE):
                paths.add(path)
    return paths
