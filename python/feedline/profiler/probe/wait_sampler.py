# SPDX-License-Identifier: Apache-2.0
"""Samples the waits of a thread that produces a batch, with the line of Python code.

A separate thread does this; it is created without Python's `threading` module, as the script may count its threads.
After the first few samples, the thread's CPU time is at most LOOK_SHARE of the elapsed time. The thread is idle while
no batch is produced.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import threading
import time
from collections import Counter
from sys import _current_frames
from types import FrameType
from typing import Any, Protocol

from feedline.profiler.probe import system_calls
from feedline.profiler.probe.system_calls import FILE, LOCK, NETWORK, PROCESS, SLEEP, STORE

SUFFIX = ".waits"
LOOK_SHARE = 0.001  # of the time, as for details
_FIRST_LOOKS, _FIRST_PAUSE_S = 8, 0.01  # samples per process regardless of cost, for short runs
_LONGEST_PAUSE_S = 0.5
_AGAIN_S = 0.0002  # by then, a thread that only waited for the GIL has acquired it
_OTHER_THREADS = 16  # timeout for a lock
_WRITTEN_EARLY, _WRITTEN = 8, 32  # samples between two writes
_PLACES = 16
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_LIBRARIES = (os.path.dirname(os.path.abspath(os.__file__)) + os.sep, "<frozen", _OURS)
_INSTALLED = ("/site-packages/", "/dist-packages/")
# Code that requests objects from remote stores, whether it waits in a socket, an event loop, or for such a thread.
_ASKS_STORES = (
    "/http/client.py", "/urllib/request.py", "/urllib3/", "/requests/", "/httpx/", "/httpcore/", "/aiohttp/",
    "/fsspec/", "/s3fs/", "/gcsfs/", "/adlfs/", "/botocore/", "/s3transfer/", "/google/cloud/storage/",
    "/azure/storage/", "/obstore/", "/s3torchconnector/", "/huggingface_hub/",
)  # fmt: skip
_FETCHERS = frozenset(("curl", "wget", "aws", "gsutil", "gcloud", "s5cmd", "rclone", "azcopy"))


class Recorder(Protocol):
    """Receives the samples and the cost of taking them."""

    silent: bool

    def passed(self, cpu_ns: int, /) -> None: ...

    def write_json(self, name: str, value: dict[str, Any], /) -> None: ...


class WaitSampler:
    """The sampler of one process. Never raises; failures are ignored."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._turn = 0
        self.restart()

    def restart(self) -> None:
        """Resets the state for another session, or in a forked process, which does not have the parent's thread."""
        self._turn += 1
        self._watched: tuple[int, int] | None = None
        self._looks = {"waiting": 0, "running": 0}
        self._seen: Counter[tuple[str, str]] = Counter()
        self._process = 0

    def begin(self) -> None:
        """Called when this thread begins to produce a batch."""
        if self._process == 0:
            self._start()
        self._watched = (threading.get_ident(), threading.get_native_id())

    def end(self) -> None:
        self._watched = None

    def _start(self) -> None:
        self._process = os.getpid()
        with contextlib.suppress(Exception):
            if not self._recorder.silent and system_calls.are_known():
                _thread.start_new_thread(self._run, (self._process, self._turn))

    def _run(self, process: int, turn: int) -> None:
        pause, made, spent = _FIRST_PAUSE_S, 0, time.thread_time_ns()
        while True:
            time.sleep(pause)
            if self._process != process or self._turn != turn or self._recorder.silent:
                return
            watched = self._watched
            if watched is not None:
                made += 1
                with contextlib.suppress(Exception):
                    self._look(*watched)
            now = time.thread_time_ns()  # including wake-up
            took, spent = now - spent, now
            self._recorder.passed(took)
            dear = took / 1e9 / LOOK_SHARE
            pause = _FIRST_PAUSE_S if made < _FIRST_LOOKS else min(max(dear, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)

    def _look(self, ident: int, native: int) -> None:
        text = _call_of(native)
        kind = system_calls.kind_of(text)
        if kind == LOCK:
            time.sleep(_AGAIN_S)
            kind = LOCK if _call_of(native) == text else None
            kind = _of_other_threads(native) if kind else None
        if self._watched is None or kind is None:
            self._looks["running"] += kind is None
            return
        location = ""
        if kind != FILE:
            frame = _current_frames().get(ident)
            location = place_of(frame)
            if kind != SLEEP and (asks_store(frame) or (kind == PROCESS and _has_fetcher())):
                kind = STORE
        self._looks["waiting"] += 1
        self._seen[kind, location] += 1
        looks = self._looks["waiting"]
        if looks % (_WRITTEN_EARLY if looks <= _WRITTEN else _WRITTEN) == 0:
            self.write()

    def write(self) -> None:
        """Writes the results so far, replacing earlier results."""
        if not self._seen:
            return
        with contextlib.suppress(Exception):  # the sampler's thread may add entries concurrently
            seen = [[kind, location, count] for (kind, location), count in self._seen.most_common(_PLACES)]
            self._recorder.write_json(f"{os.getpid()}{SUFFIX}", {"pid": os.getpid(), **self._looks, "seen": seen})


def _call_of(native: int) -> bytes:
    """Reading the file releases the GIL, so a thread that was waiting only for the GIL is then running."""
    file = os.open(f"/proc/self/task/{native}/syscall", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, 256)
    finally:
        os.close(file)


def _of_other_threads(native: int) -> str | None:
    """Returns the kind of wait of a thread that is blocked by a lock: None if another thread of the process is running
    or runnable, such as an OpenMP thread of the same operation, otherwise FILE or NETWORK if another thread reads files
    or sockets, otherwise LOCK.
    """
    found, own = LOCK, threading.get_native_id()
    for name in os.listdir("/proc/self/task")[:_OTHER_THREADS]:
        if int(name) not in (native, own):
            with contextlib.suppress(OSError, ValueError):
                text = _call_of(int(name))
                if system_calls.listens(text):
                    continue
                kind = system_calls.kind_of(text)
                if kind is None and text.startswith(b"running"):
                    return None
                if kind in (FILE, NETWORK) and found != FILE:
                    found = kind
    return found


def asks_store(frame: FrameType | None) -> bool:
    """Whether one of the functions on the thread's stack belongs to a library that requests objects from remote
    stores.
    """
    while frame is not None:
        path = frame.f_code.co_filename
        if _is_library(path) and any(part in path for part in _ASKS_STORES):
            return True
        frame = frame.f_back
    return False


def _has_fetcher() -> bool:
    """Whether this process has a child process that fetches data, such as webdataset's `pipe:curl`."""
    for thread in os.listdir("/proc/self/task")[:_OTHER_THREADS]:
        with contextlib.suppress(OSError):
            for child in _text(f"/proc/self/task/{thread}/children").split():
                with contextlib.suppress(OSError):
                    if _text(f"/proc/{child}/comm").strip() in _FETCHERS:
                        return True
    return False


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(4096)


def place_of(frame: FrameType | None) -> str:
    """Returns the innermost line of the script's own code, and the position in a library that it calls; "" if no Python
    code runs.
    """
    inner, own = frame, frame
    while own is not None and _is_library(own.f_code.co_filename):
        own = own.f_back
    if inner is None:
        return ""
    location = _line_of(own or inner)
    if own is not None and own is not inner:
        location += f", in {os.path.basename(inner.f_code.co_filename)}'s {inner.f_code.co_name}()"
    return location


def _is_library(path: str) -> bool:
    return path.startswith(_LIBRARIES) or any(part in path for part in _INSTALLED)


def _line_of(frame: FrameType) -> str:
    path = frame.f_code.co_filename
    near = os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path
    return f"{near}:{frame.f_lineno} in {frame.f_code.co_name}()"
