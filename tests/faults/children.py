# SPDX-License-Identifier: Apache-2.0
"""Runs functions in forked children of a process that has imported Feedline, which takes milliseconds instead of a
second, with a fault, a time limit, a time to be killed at, or a memory limit.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import errno
import faulthandler
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HANG_S = 60.0
_STACKS_S = 5.0
_SOURCE = Path(__file__).with_name("failing_calls.cpp")
_COMPILE = ("-std=c++20", "-O1", "-shared", "-fPIC", "-fno-builtin", "-D_GNU_SOURCE")


@dataclass(frozen=True)
class Fault:
    """The ``at``-th call (from 1; 0: none) fails with an error number, writes half ("short") or kills the process."""

    at: int
    action: str  # as in failing_calls.cpp
    lasts: bool = False

    def __str__(self) -> str:
        name = errno.errorcode[int(self.action)] if self.action.isdigit() else self.action
        return f"{name} from call {self.at} on" if self.lasts else f"{name} at call {self.at}"


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit status, or minus the signal."""

    status: int
    result: str  # what the function returned
    output: str  # of the child and its children
    hung: bool = False


class Children:
    """Forks children with one root folder, whose calls are counted."""

    def __init__(self, folder: Path) -> None:
        self.root, self._work = folder / "root", folder / "work"
        self._work.mkdir(parents=True)
        self.hang_s = HANG_S
        self._counter, self._log = self._work / "counter", self._work / "calls"

    def run(
        self,
        function: Callable[[], str],
        fault: Fault | None = None,
        *,
        kill_after: float | None = None,
        memory: int | None = None,
    ) -> Ended:
        """Runs a function whose exceptions end the child as they end the command.

        Args:
            fault: None counts nothing, so that no process needs the library.
            kill_after: seconds after which the child gets SIGKILL.
            memory: bytes that the child may allocate in addition to what it has.
        """
        self._counter.write_bytes(bytes(8))
        self._log.unlink(missing_ok=True)
        results, output = self._work / "result", self._work / "output"
        results.unlink(missing_ok=True)
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            self._in_child(function, fault, memory, results, output)
        status, hung = _ended(child, self.hang_s if kill_after is None else kill_after, kill_after is None)
        text = output.read_text(errors="replace") if output.exists() else ""
        result = results.read_text() if results.exists() else ""
        return Ended(os.waitstatus_to_exitcode(status), result, text, hung and kill_after is None)

    def calls(self) -> list[tuple[str, str]]:
        """Returns the name and the path of each call of the last counted run."""
        if not self._log.exists():
            return []
        lines = sorted(
            (line.split(" ", 2) for line in self._log.read_text().splitlines()), key=lambda line: int(line[0])
        )
        return [(name, path) for _, name, path in lines]

    def empty_root(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        (self.root / "tmp").mkdir(parents=True)

    def _in_child(
        self, function: Callable[[], str], fault: Fault | None, memory: int | None, results: Path, output: Path
    ) -> None:
        status = 70
        try:
            file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, 1)
            os.dup2(file, 2)
            faulthandler.enable(file)
            if fault is not None:
                self._arm(fault)
            if memory is not None:
                limit = _virtual_bytes() + memory
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            status = _status_of(function, results)
            threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter does at its end
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _arm(self, fault: Fault) -> None:
        os.environ |= {
            "FAULTS_ROOT": str(self.root),
            "FAULTS_COUNTER": str(self._counter),
            "FAULTS_AT": str(fault.at),
            "FAULTS_ACTION": fault.action,
            "FAULTS_LASTING": "1" if fault.lasts else "0",
            "FAULTS_LOG": str(self._log),
        }
        ctypes.CDLL(None).faults_arm()


def library(folder: Path) -> Path:
    """Compiles the library of failing calls."""
    made = folder / "failing_calls.so"
    subprocess.run(["g++", *_COMPILE, str(_SOURCE), "-o", str(made), "-ldl"], check=True)
    return made


def environment(folder: Path) -> dict[str, str]:
    """Returns the variables of a process that forks children: caches and temporary files are below the root."""
    root = folder / "root"
    return {
        **os.environ,
        "LD_PRELOAD": str(library(folder)),
        "HOME": str(root),
        "XDG_CACHE_HOME": str(root / "xdg"),
        "TMPDIR": str(root / "tmp"),
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _status_of(function: Callable[[], str], results: Path) -> int:
    import feedline

    try:
        result = function()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except feedline.Error as error:
        print(f"feedline: {error}", file=sys.stderr)
        return 3
    except BaseException:
        traceback.print_exc()
        return 70
    results.write_text(result)
    return 0


def _ended(child: int, seconds: float, shows_stacks: bool) -> tuple[int, bool]:
    """Waits for the child, and kills it after this time. Returns its status, and whether it was killed. With
    ``shows_stacks``, it first writes the stacks of its Python threads to its output.
    """
    with contextlib.closing(_Process(child)) as process:
        hung = not process.ends_within(seconds)
        if hung and shows_stacks:
            os.kill(child, signal.SIGABRT)
            process.ends_within(_STACKS_S)
        if hung:
            os.kill(child, signal.SIGKILL)
        return os.waitpid(child, 0)[1], hung


class _Process:
    def __init__(self, pid: int) -> None:
        self._fd = os.pidfd_open(pid)

    def ends_within(self, seconds: float) -> bool:
        return bool(select.select([self._fd], [], [], seconds)[0])

    def close(self) -> None:
        os.close(self._fd)


def _virtual_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
