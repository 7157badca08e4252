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
from time import perf_counter_ns as clock
from time import thread_time_ns as cpu_clock
from typing import TYPE_CHECKING, Any, Protocol

from feedline.diagnose.probe.events import HEARD

if TYPE_CHECKING:
    from feedline.diagnose.probe.recorder import Recorder

SUFFIX = ".files"
_TOLD = 64  # opens that the recorder is told of at a time
_EACH = 32  # the first so many of a process are noted; then every second one for as many, every fourth, and so on
_CODE = (".py", ".pyc", ".pyi", ".so")
_SYSTEM = ("/proc/", "/sys/", "/dev/")


class Collector(Protocol):
    def add(self, path: str, /) -> None: ...


class OpenedFiles:
    """The audit hook of one process and of those that it forks. Never raises: that would stop the script's open()."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.collected: Collector | None = None  # where a copy of the process collects them itself
        self.restart()

    def restart(self) -> None:
        """In a process of its own."""
        self._unheard = self._written = 0
        self._passed = self._told = self._spent_ns = (
            0  # opens that were to go by unheard, and opens that the recorder was told of
        )

    def listen(self) -> None:
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open":
            return
        if self._unheard and self.collected is None:  # what most opens cost: nothing but this
            self._unheard -= 1
            return
        recorder = self._recorder
        if self.collected is None and not (recorder.in_worker or getattr(recorder.local, "in_next", False)):
            return
        with contextlib.suppress(Exception):
            path, _mode, flags = arguments
            if not isinstance(path, int) and flags & os.O_ACCMODE == os.O_RDONLY:
                self._take(os.path.abspath(os.fsdecode(path)))

    def _take(self, path: str) -> None:
        if path.endswith(_CODE) or path.startswith(_SYSTEM):
            return
        if self.collected is not None:
            self.collected.add(path)
        elif not self._recorder.silent:
            begin = cpu_clock()
            self._written += 1
            self._unheard = (1 << self._written // _EACH) - 1
            self._passed += self._unheard
            self._write(json.dumps(path) + "\n")
            self._spent_ns += cpu_clock() - begin

    def tell(self) -> None:
        """Has the recorder count what it was not told of yet, once that is more than a few."""
        heard = self._passed - self._unheard + self._written
        if heard - self._told >= _TOLD:
            self._recorder.record(HEARD, clock(), 0, heard - self._told, 0, False)
            self._told = heard
            self._recorder.paid(self._spent_ns)
            self._spent_ns = 0

    def _write(self, line: str) -> None:
        name = self._recorder.session / f"{os.getpid()}{SUFFIX}"
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)


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
