# SPDX-License-Identifier: Apache-2.0
"""Runs in the script's processes under ``feedline tune``: forks the copy that measures, and pauses the loop during the
measurement.

The copy is forked when the first loop begins. The loop then continues, so that its steps can be timed, until
the profiling process requests a pause. The loop waits inside next(), and then continues or ends the script by
SystemExit, as requested.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

from feedline.profiler import process_copies
from feedline.profiler.probe.recorder import Recorder
from feedline.profiler.variables import EXTENSION, SESSION

SOCKET, CLAIM, HOLD, HELD, RELEASE = "tune.socket", "tune.claim", "tune.hold", "held", "tune.release"
GO, END = "go", "end"
STEPS, STEPPING = 8, "stepping"  # calls to next() after which a loop is reported as running
_LOOK_S = 0.05
_released = False
_calls = 0


def install(module: Any, recorder: Recorder) -> None:
    """Called with each newly executed module that has a loader or a loader's iterator."""
    if hasattr(module, "DataLoader"):
        module.DataLoader.__iter__ = _around_iter(module.DataLoader.__iter__, recorder)
    for name in ("_BaseDataLoaderIter", "NativeIterator"):
        if hasattr(module, name) and "__next__" in vars(getattr(module, name)):
            iterator = getattr(module, name)
            iterator.__next__ = _around_next(iterator.__next__, recorder)


def _around_iter(original: Any, recorder: Recorder) -> Any:
    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        if not recorder.in_worker and not recorder.silent:
            _offer(self, recorder)
        return original(self)

    return __iter__


def _around_next(original: Any, recorder: Recorder) -> Any:
    hold = str(recorder.session / HOLD)

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        global _calls
        if not _released and not recorder.silent and not recorder.in_worker:
            _calls += 1
            if _calls == STEPS:
                (recorder.session / f"{os.getpid()}.{STEPPING}").touch()
            if os.path.exists(hold):
                _wait(recorder.session)
        return original(self)

    return __next__


def _wait(session: Path) -> None:
    """Waits until the profiling process decides how to continue. If the profiling process has died, the script ends."""
    global _released
    (session / f"{os.getpid()}.{HELD}").touch()
    answer = END
    with contextlib.suppress(OSError):
        watcher = Path("/proc", (session / process_copies.WATCHER).read_text())
        while watcher.exists():
            if (session / RELEASE).exists():
                answer = (session / RELEASE).read_text()
                break
            time.sleep(_LOOK_S)
    _released = True
    if answer != GO:
        raise SystemExit(0)


def _offer(loader: Any, recorder: Recorder) -> None:
    """Selects the first loader that is iterated, in any process, as the one to tune. Never raises."""
    try:
        if (recorder.session / CLAIM).exists():
            return
        refused = process_copies.refusal(loader)
        if refused is not None:
            recorder.note(f"no copy: {refused}")
            return
        if process_copies.claim(recorder.session / CLAIM):
            process_copies.fork_away(lambda: _live(loader, recorder))
    except Exception as error:
        recorder.note(f"the script's process could not be copied: {error!r}")


def _live(loader: Any, recorder: Recorder) -> None:
    """The copy's main function: connects to the profiling process and serves its requests until it disconnects."""
    recorder.silent = True
    (recorder.session / process_copies.PID).write_text(str(os.getpid()))
    for name in (EXTENSION, SESSION):  # processes started by this one are not watched
        os.environ.pop(name, None)
    process_copies.let_go()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connect(connection, recorder.session)
        lines = connection.makefile("rw", encoding="utf-8")
        threading.Thread(target=_end_with, args=(recorder.session,), daemon=True).start()
        from feedline.tune.service import Service

        try:
            Service(loader).serve(lines)
        finally:
            os.killpg(0, signal.SIGKILL)  # with all processes that its loaders have started


def connect(connection: socket.socket, session: Path) -> None:
    """Connects to the profiling process; its socket's path may exceed the maximum length of a socket address."""
    folder = os.open(session, os.O_PATH | os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{SOCKET}")
    finally:
        os.close(folder)


def _end_with(session: Path) -> None:
    """Ends the copy if the profiling process has died, even in the middle of a measurement."""
    watcher = Path("/proc", (session / process_copies.WATCHER).read_text())
    while watcher.exists():
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)
