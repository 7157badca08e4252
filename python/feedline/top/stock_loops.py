# SPDX-License-Identifier: Apache-2.0
"""Estimates how long a loop over torch's DataLoader waits for its workers, from /proc, without changes to the script.

A loop with workers waits for a batch in one of two system calls, both with a time limit: poll() of the workers' pipe,
or, with pin_memory, a lock. Then it receives the batch's files from the worker's socket. The state of the loop's main
thread is sampled. A loop without workers makes its batches itself, so its wait cannot be observed from outside, and
neither can individual batches.
"""

from __future__ import annotations

import contextlib
import os
import platform
import random
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PERIOD_S = 0.1  # a sample takes some microseconds, and a wake-up as long as several samples
_MOST_LOOPS = 16
_HISTORY = 60
_LEAST_SAMPLES = 5
_POLL, _PPOLL, _FUTEX = {"x86_64": (7, 271, 202), "aarch64": (-1, 73, 98)}.get(platform.machine(), (-2, -2, -2))
# connect, recvfrom, recvmsg; and read, whose descriptor may also be a file
_RECEIVE = {"x86_64": (42, 45, 47), "aarch64": (203, 207, 212)}.get(platform.machine(), ())
_READ = {"x86_64": 0, "aarch64": 63}.get(platform.machine(), -2)
_WAIT_BITSET, _OPERATION = 9, 0x7F  # of futex(), as used by locks with a time limit
_LONGEST_POLL_MS = 5000  # torch polls its workers' pipe for this long, then checks whether the workers are alive


@dataclass(frozen=True)
class LoopView:
    """The estimated waiting of one process. `wait_share`: since the previous view; None if it could not be sampled;
    `missing` is then the reason.
    """

    pid: int
    wait_share: float | None
    waits: tuple[float, ...]  # wait shares of the latest views, the current view last
    missing: str = ""


class _Loop:
    def __init__(self, file: int, folder: Path) -> None:
        self.file, self._folder = file, folder
        self.samples = self.waiting = 0
        self.waits: list[float] = []

    def look(self) -> None:
        with contextlib.suppress(OSError):  # the process has ended
            text = os.pread(self.file, 256, 0)
            self.samples += 1
            self.waiting += is_waiting(text) or self._receives(text)

    def _receives(self, text: bytes) -> bool:
        """Whether the thread reads from a pipe or socket."""
        words = text.split(maxsplit=2)
        if len(words) < 3 or words[0] != b"%d" % _READ:
            return False
        with contextlib.suppress(OSError, ValueError):
            return os.readlink(self._folder / f"fd/{int(words[1], 16)}").startswith(("pipe:", "socket:"))
        return False

    def take(self) -> float | None:
        """Returns the share of the samples since the last call, or None if there were too few."""
        if self.samples < _LEAST_SAMPLES:
            return self.waits[-1] if self.waits else None
        share = self.waiting / self.samples
        self.samples = self.waiting = 0
        self.waits = [*self.waits, share][-_HISTORY:]
        return share


class StockLoops:
    """Samples the main threads of processes. Must be closed."""

    def __init__(self, root: Path = Path("/"), period_s: float = _PERIOD_S) -> None:
        self._root, self._period_s = root, period_s
        self._loops: dict[int, _Loop] = {}
        self._refused: dict[int, str] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for loop in self._loops.values():
            os.close(loop.file)
        self._loops.clear()

    def look(self, pids: Iterable[int]) -> tuple[LoopView, ...]:
        """Returns the waiting of these processes since the previous call; the first call starts sampling them."""
        wanted = list(pids)[:_MOST_LOOPS]
        with self._lock:
            for pid in set(self._loops) - set(wanted):
                os.close(self._loops.pop(pid).file)
            for pid in wanted:
                if pid not in self._loops and pid not in self._refused:
                    self._open(pid)
            views = [self._view(pid) for pid in wanted]
        if self._thread is None and self._loops:
            self._thread = threading.Thread(target=self._run, name="feedline-top-loops", daemon=True)
            self._thread.start()
        return tuple(views)

    def sample(self) -> None:
        """Samples all processes once."""
        with self._lock:
            for loop in self._loops.values():
                loop.look()

    def _run(self) -> None:
        # at random times, because loops are periodic
        while not self._stop.wait(self._period_s * random.uniform(0.5, 1.5)):
            self.sample()

    def _open(self, pid: int) -> None:
        if _POLL == -2:
            self._refused[pid] = f"system calls of {platform.machine()} processors are not known"
            return
        try:
            file = os.open(self._root / f"proc/{pid}/syscall", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            self._refused[pid] = _reason(error)
            return
        try:
            os.pread(file, 256, 0)  # the kernel checks the permission again at each read
        except OSError as error:
            os.close(file)
            self._refused[pid] = _reason(error)
            return
        self._loops[pid] = _Loop(file, self._root / f"proc/{pid}")

    def _view(self, pid: int) -> LoopView:
        loop = self._loops.get(pid)
        if loop is None:
            return LoopView(pid, None, (), self._refused.get(pid, ""))
        share = loop.take()
        return LoopView(pid, share, tuple(loop.waits))


def _reason(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return (
            "no permission to read the process's system calls: run top as root, or as the process's user with "
            "kernel.yama.ptrace_scope=0"
        )
    return f"its system calls cannot be read: {error.strerror}"


def is_waiting(text: bytes) -> bool:
    """Whether a thread with this /proc/PID/syscall waits as torch's loops wait for a batch."""
    words = text.split()
    try:
        number, *arguments = (int(word, 0) for word in words[:5])
    except ValueError:  # "running"
        return False
    if len(arguments) < 4:
        return False
    if number in _RECEIVE:
        return True
    if number == _POLL:
        return arguments[1] == 1 and 0 < arguments[2] <= _LONGEST_POLL_MS
    if number == _PPOLL:
        return arguments[1] == 1 and arguments[2] != 0
    return number == _FUTEX and arguments[1] & _OPERATION == _WAIT_BITSET and arguments[3] != 0
