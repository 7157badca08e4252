# SPDX-License-Identifier: Apache-2.0
"""Records errors that end a loop or a process, with the processes that died, for a diagnosis of crashed runs.

sitecustomize loads this file at the end of a Python process that an error ended, so it imports only the standard
library.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

SUFFIX = ".failure"  # JSON, one file per failed loop, and one per process that an error ended
STACK = ".stack"  # the Python stack of a process that received a fatal signal, written by faulthandler
_MOST_FAILURES = 8  # per process: a script may catch and repeat the same error
_HEAD, _TAIL = 1500, 4500  # characters of a message: torch appends the traceback of a worker
_MOST_CAUSES = 6
_DEATH_S = 1.0
_LIBRARIES = ("site-packages", "dist-packages", "<frozen")

_stack_of = 0  # the process whose stacks are written to a file of this module


def of_error(error: BaseException, **others: Any) -> dict[str, Any]:
    """Returns the facts about an error as JSON data."""
    causes: list[dict[str, str]] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < _MOST_CAUSES:
        causes.append({"error": _name_of(cause), "message": _shortened(_text_of(cause))})
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    number = getattr(error, "errno", None)
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "time_ns": time.perf_counter_ns(),
        "causes": causes,
        "errno": number if isinstance(number, int) else None,
        "place": _place_of(error.__traceback__),
        **others,
    }


def workers_of(iterator: object) -> list[dict[str, Any]]:
    """Returns the process id and exit code of each worker of a loader's iterator; the exit code of a running worker is
    None.
    """
    found = []
    for number, worker in enumerate(getattr(iterator, "_workers", None) or ()):
        with contextlib.suppress(Exception):
            found.append({"worker": number, "pid": worker.pid, "exit": worker.exitcode})
    return found


def await_death(error: BaseException, iterator: object) -> None:
    """If `error` concerns a connection, which a dying worker closes, waits briefly until the kernel reports the
    worker's death.
    """
    if not isinstance(error, (ConnectionError, EOFError)):
        return
    until = time.monotonic() + _DEATH_S
    workers = getattr(iterator, "_workers", None) or ()
    while time.monotonic() < until and all(_runs(worker) for worker in workers):
        with contextlib.suppress(Exception):  # torch's handler of SIGCHLD raises here
            time.sleep(0.005)


def _runs(worker: Any) -> bool:
    try:
        # does not reap the process: its owner waits for it
        return os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except Exception:  # started by a fork server, or waited for already
        return getattr(worker, "exitcode", 0) is None


def write(session: str | Path, failure: dict[str, Any]) -> None:
    """Writes a failure into the session's folder, unless this process has written many. Never raises."""
    with contextlib.suppress(Exception):
        for number in range(_MOST_FAILURES):
            path = os.path.join(session, f"{os.getpid()}.{number}{SUFFIX}")
            with contextlib.suppress(FileExistsError):
                file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with open(file, "w") as text:
                    json.dump(failure, text)
                return


def write_last_error(session: str) -> None:
    """Records the error that ends this process, which Python has just printed, if there is one."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if isinstance(error, BaseException):
        write(session, of_error(error, role="process", fatal=True))


def keep_stack(session: str | Path) -> None:
    """From now on, a fatal signal writes this process's Python stack into the session's folder, and then calls the
    handler that is installed now. Does nothing if the script uses faulthandler itself.
    """
    global _stack_of
    if faulthandler.is_enabled():
        return
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        path = os.path.join(session, f"{os.getpid()}{STACK}")
        # the descriptor remains open until the process ends
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        faulthandler.enable(file=file, all_threads=False)
        _stack_of = os.getpid()


def drop_inherited_stack() -> None:
    """In a forked process: removes the handlers that `keep_stack` installed in its parent."""
    global _stack_of
    if _stack_of and _stack_of != os.getpid() and faulthandler.is_enabled():
        faulthandler.disable()
        _stack_of = 0


def _name_of(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # from a class of the script
        return ""


def _shortened(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n...\n{text[-_TAIL:]}"


def _place_of(trace: TracebackType | None) -> str:
    """Returns the innermost line of the script itself, such as "train.py:12 in main()"; "" if there is none."""
    place, library = "", os.path.dirname(os.__file__)
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    while trace is not None:
        code = trace.tb_frame.f_code
        file = code.co_filename
        if not (file.startswith((library, own)) or any(part in file for part in _LIBRARIES)):
            place = f"{os.path.basename(file)}:{trace.tb_lineno} in {code.co_name}()"
        trace = trace.tb_next
    return place
