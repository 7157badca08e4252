# SPDX-License-Identifier: Apache-2.0
"""Creates copies of a script's process, releases their resources, and ends them.

A copy is a fork, so it has the script's loader, dataset, sampler and collate function without pickling. The copy closes
the script's pipes, sockets and standard streams, and runs as an orphan in its own session, so that the script does not
wait for the copy and the copy does not receive its signals. The copy also releases the script's GPU: it does not use
the GPU or page-lock memory, and must not free the script's GPU memory.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

WATCHER, PID = "watcher", "experiments.pid"  # files of a session: process ids of the profiler and of the copy
_MEMORY_DEVICES = 1  # major number: /dev/null, /dev/zero, /dev/urandom
_END_S = 0.5  # time to wait for killed processes, which may be slow on a busy machine


def refusal(loader: Any) -> str | None:
    """Returns the reason why a copy could not use `loader`; None if it can."""
    if hasattr(loader, "dataset") or remake_of(loader) is not None:
        return None
    return "this loader has no dataset that can be read again"


def remake_of(loader: Any) -> Any:
    """Returns a function that creates the Feedline loader again with a given number of threads; None for other
    loaders.
    """
    return loader.__dict__.get("_remake") if type(loader).__module__ == "feedline.loader.loader" else None


def claim(path: Path) -> bool:
    """Whether this process is the first one in its run to call this function; that process must create the copy."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def fork_away(live: Callable[[], None]) -> None:
    """Runs `live` in a copy of this process; the copy is an orphan in its own session."""
    collects = gc.isenabled()
    gc.disable()  # fork hooks run before the copy's first statement, and may start a collection
    try:
        with warnings.catch_warnings():  # with threads: the copy takes only locks that a worker would take too
            warnings.simplefilter("ignore")
            first = os.fork()
            if first == 0:
                _become_a_copy(live, collects)
    finally:
        if collects:
            gc.enable()
    with contextlib.suppress(ChildProcessError):  # if the script ignores SIGCHLD: the process has ended, and its status
        # is lost
        os.waitpid(first, 0)


def _become_a_copy(live: Callable[[], None], collects: bool) -> NoReturn:
    try:
        gc.freeze()  # torch may free an event or page-locked GPU memory in a copy, which ends the copy
        if collects:
            gc.enable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        os.setsid()
        if os.fork() == 0:
            live()
    finally:
        os._exit(0)


def let_go() -> None:
    """Closes devices, and standard streams, pipes and sockets, whose peers must be able to detect that the script
    closed them.

    A GPU's driver frees a process's memory only when no process has the device open any more.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in os.listdir("/proc/self/fd"):
        file = int(number)
        try:
            facts = os.fstat(file)
            mode = facts.st_mode
            device = stat.S_ISCHR(mode) and os.major(facts.st_rdev) != _MEMORY_DEVICES
            if file > 2 and (stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode) or device):
                os.dup2(nothing, file)  # not closed: its descriptor must not be reused
        except OSError:
            continue
    for file in (0, 1, 2):
        os.dup2(nothing, file)


def has_lost_its_device() -> bool:
    """Whether this process is a copy of a process that has used a GPU; such a copy cannot page-lock memory for the
    GPU.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    kinds = {"cuda"}
    if hasattr(torch, "accelerator") and torch.accelerator.current_accelerator() is not None:
        kinds.add(torch.accelerator.current_accelerator().type)
    return any(getattr(getattr(torch, kind, None), "_is_in_bad_fork", bool)() for kind in kinds)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Delays Ctrl-C until after the block, since interrupting a cleanup would leave files and processes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[tuple[int, Any]] = []
    before = signal.signal(signal.SIGINT, lambda *about: heard.append(about))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    if heard and callable(before):
        before(*heard[0])


def end_the_copy(session: Path) -> None:
    """Ends the copy in `session`, and all processes that it has started."""
    with undisturbed(), contextlib.suppress(OSError, ValueError):
        group = os.getpgid(int((session / PID).read_text()))  # the namespace in which the process was created
        (session / PID).unlink()  # its process id may be reused
        if group == os.getpgrp():
            return
        os.killpg(group, signal.SIGKILL)  # includes its workers
        until = time.monotonic() + _END_S
        while _group_lives(group) and time.monotonic() < until:
            time.sleep(0.01)


def _group_lives(number: int) -> bool:
    """Whether a process of this group is still running."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                state, _, group = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[:3]
                if int(group) == number and state not in "ZX":
                    return True
    return False
