# SPDX-License-Identifier: Apache-2.0
"""Copies of a script's process: how one is made, what it lets go of, and how it is ended.

A copy is a fork: it has the script's loader, with its dataset, sampler and collate function, and nothing of it has to
be made anew or pickled. It lives without the script's pipes, sockets and standard streams, in a session of its own and
as nobody's child, so that the script neither waits for it nor hears of it. Of a GPU that the script uses it has let go,
too: it neither copies to it nor page-locks memory, and what the script keeps there is not its own to free.
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

WATCHER, PID = "watcher", "experiments.pid"  # files of a session: numbers of who watches, and of the copy
_MEMORY_DEVICES = 1  # major number: /dev/null, /dev/zero, /dev/urandom
_END_S = 0.5  # that killed processes are waited for: a full machine takes some of it


def refusal(loader: Any) -> str | None:
    """Why a copy could do nothing with `loader`; None: it can."""
    if hasattr(loader, "dataset") or remake_of(loader) is not None:
        return None
    return "this loader has no dataset to read again"


def remake_of(loader: Any) -> Any:
    """Of Feedline's own loader: what makes another like it, with so many threads; None of all others."""
    return loader.__dict__.get("_remake") if type(loader).__module__ == "feedline.loader.loader" else None


def claim(path: Path) -> bool:
    """Whether this process is the first of its run that asks: one makes a copy."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def fork_away(live: Callable[[], None]) -> None:
    """Runs `live` in a copy of this process, which becomes nobody's child and leads a session of its own."""
    collects = gc.isenabled()
    gc.disable()  # before a copy's first own statement other hooks run, which may set off a collection
    try:
        with warnings.catch_warnings():  # threads: the copy takes no lock of theirs that a worker would not take
            warnings.simplefilter("ignore")
            first = os.fork()
            if first == 0:
                _become_a_copy(live, collects)
    finally:
        if collects:
            gc.enable()
    with contextlib.suppress(ChildProcessError):  # a script that ignores SIGCHLD: it has ended, and nobody is told
        os.waitpid(first, 0)


def _become_a_copy(live: Callable[[], None], collects: bool) -> NoReturn:
    try:
        gc.freeze()  # where torch frees an event or page-locked memory of a GPU in a copy, the copy is ended
        if collects:
            gc.enable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        os.setsid()
        if os.fork() == 0:
            live()
    finally:
        os._exit(0)


def let_go() -> None:
    """Of standard streams, pipes and sockets, whose other ends must see the script close them; and of devices.

    A GPU's driver frees what a process had there when nobody has it open any more.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in os.listdir("/proc/self/fd"):
        file = int(number)
        try:
            facts = os.fstat(file)
            mode = facts.st_mode
            device = stat.S_ISCHR(mode) and os.major(facts.st_rdev) != _MEMORY_DEVICES
            if file > 2 and (stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode) or device):
                os.dup2(nothing, file)  # not closed: its number must not become another file's
        except OSError:
            continue
    for file in (0, 1, 2):
        os.dup2(nothing, file)


def has_lost_its_device() -> bool:
    """Whether this process is a copy of one that had used a GPU: it cannot page-lock memory for it, either."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    kinds = {"cuda"}
    if hasattr(torch, "accelerator") and torch.accelerator.current_accelerator() is not None:
        kinds.add(torch.accelerator.current_accelerator().type)
    return any(getattr(getattr(torch, kind, None), "_is_in_bad_fork", bool)() for kind in kinds)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C is heard behind the block: in the middle of clearing up it would leave the rest behind."""
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
    """The copy in `session`, asleep or at work, with all that it has started."""
    with undisturbed(), contextlib.suppress(OSError, ValueError):
        group = os.getpgid(int((session / PID).read_text()))  # of the session that it was made in, its own
        (session / PID).unlink()  # its number may become another's
        if group == os.getpgrp():
            return
        os.killpg(group, signal.SIGKILL)  # its workers go with it
        until = time.monotonic() + _END_S
        while _group_lives(group) and time.monotonic() < until:
            time.sleep(0.01)


def _group_lives(number: int) -> bool:
    """Whether a process of this group has not ended yet."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                state, _, group = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[:3]
                if int(group) == number and state not in "ZX":
                    return True
    return False
