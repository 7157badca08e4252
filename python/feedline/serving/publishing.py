# SPDX-License-Identifier: Apache-2.0
"""Publishes the counters of this process's loaders for ``feedline top``, on a socket that only this user can use.

From the first ``iter()`` of a loader until the last loader is closed or garbage collected (for Feedline's DataLoader,
until no epoch is in progress), a thread listens on a socket ``PID-RANDOM.sock`` in the first usable folder of
:func:`folders`. Each client receives one JSON object with the current counters, and is disconnected. The thread sleeps
while there are no clients. ``FEEDLINE_PUBLISH=0`` disables publishing.

The object contains ``feedline_counters``, the version; ``pid``; ``rank`` and ``world_size``, or None; ``time_s`` of
CLOCK_MONOTONIC; and ``loaders``, each with ``number``, ``kind``, ``source``, ``epoch``, ``batches_per_epoch`` and
``counters``, which have the form of the statistics of the engine or of Feedline's DataLoader.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import stat
import struct
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, Protocol

from ..errors import ConfigError, Error
from ..machine import ranks

VERSION = 1
SUFFIX = ".sock"
_ANSWER_S = 1.0  # timeout for clients that do not read
_END_S = 1.0  # the thread ends within a millisecond, unless the machine is very busy
_WAITING = 8  # clients
_WAKES = 64
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
_MOST_CLEANED = 64


class _Publishes(Protocol):
    def _published(self) -> dict[str, Any]: ...


_lock = threading.RLock()  # reentrant: garbage collection of a loader in this thread may come here again
_loaders: dict[int, weakref.ref[Any]] = {}
_server: _Server | None = None
_next_number = 0
_watches_process = False


def offer(loader: _Publishes) -> None:
    """Publishes `loader` until :func:`withdraw` is called or it is garbage collected. Idempotent; never raises and
    never blocks.
    """
    global _server, _next_number
    with _lock:
        if any(reference() is loader for reference in list(_loaders.values())):
            return
        number, _next_number = _next_number, _next_number + 1
        _loaders[number] = weakref.ref(loader, lambda _: _forget(number))
        if _server is None:
            _watch_process()
            _server = _started()


def withdraw(loader: _Publishes) -> None:
    """Stops publishing `loader`; if it is the last one, ends the thread and removes the socket."""
    with _lock:
        mine = [number for number, reference in list(_loaders.items()) if reference() is loader]
        server = _server
        for number in mine:
            _forget(number)
        ended = server is not None and _server is None
    if ended and server is not None:
        server.join()


def folders(uid: int) -> list[str]:
    """Returns the folders for a user's sockets. Processes use the first available folder; readers search all of
    them.

    If ``FEEDLINE_RUNTIME_DIR`` is set, only that folder is returned. Otherwise the folders are ``XDG_RUNTIME_DIR``,
    ``/run/user/UID`` and ``/tmp``, since the first is often missing in a scheduler's job but set in a shell on the same
    machine.
    """
    given = os.environ.get("FEEDLINE_RUNTIME_DIR")
    if given:
        return [given]
    runtime = os.environ.get("XDG_RUNTIME_DIR") if uid == os.geteuid() else None
    parents = [runtime, f"/run/user/{uid}"]
    found = [os.path.join(parent, "feedline") for parent in parents if parent]
    return list(dict.fromkeys([*found, f"/tmp/feedline-{uid}"]))


def open_folder(path: str, uid: int) -> int:
    """Opens a folder in which only user `uid` can create files, and returns its descriptor.

    Raises:
        Error: the path is a link, not a folder, owned by another user, or accessible to others.
        OSError: the folder does not exist or cannot be opened.
    """
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except NotADirectoryError:
        raise Error(f"{path} is a link or not a folder: remove it, or set FEEDLINE_RUNTIME_DIR to a folder") from None
    status = os.fstat(folder)
    if status.st_uid == uid and not stat.S_IMODE(status.st_mode) & 0o077:
        return folder
    os.close(folder)
    if status.st_uid != uid:
        raise Error(f"{path} belongs to user {status.st_uid}: set FEEDLINE_RUNTIME_DIR to your own folder")
    raise Error(f"{path} is accessible to other users: run chmod 700 {path}")


def connect(folder: int, name: str, timeout_s: float) -> socket.socket:
    """Connects to the socket `name` in a folder. Raises OSError on failure: ConnectionRefusedError if the socket's
    process has ended.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect(f"/proc/self/fd/{folder}/{name}")  # a socket's path is limited to 107 bytes, a folder's is
        # longer
    except BaseException:
        connection.close()
        raise
    return connection


def peer(connection: socket.socket) -> tuple[int, int]:
    """Returns the peer's (process id, user id) from the kernel; the process id is 0 if it is in another PID
    namespace.
    """
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return pid, uid


def sockets(folder: int, uid: int) -> Iterator[str]:
    """Returns the names of `uid`'s sockets in a folder; ignores all other files."""
    for name in sorted(os.listdir(folder)):
        with contextlib.suppress(OSError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if name.endswith(SUFFIX) and stat.S_ISSOCK(status.st_mode) and status.st_uid == uid:
                yield name


def document() -> dict[str, Any]:
    """Returns the JSON object for clients."""
    loaders = []
    for number, reference in list(_loaders.items()):
        loader = reference()
        if loader is not None:
            # a loader that is closing, or belongs to the process that this one was forked from
            with contextlib.suppress(Error, AttributeError):
                loaders.append({"number": number, **loader._published()})
    rank = None
    with contextlib.suppress(ConfigError):
        rank = ranks.from_torch() or ranks.from_environment(os.environ)
    return {
        "feedline_counters": VERSION,
        "pid": os.getpid(),
        "rank": rank and rank[0],
        "world_size": rank and rank[1],
        "time_s": time.monotonic(),
        "loaders": loaders,
    }


class _Server:
    """The socket, and the thread that serves it. The thread creates the socket, so that a slow file system does not
    delay the first batch.
    """

    def __init__(self) -> None:
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._woken, self._wakes = socket.socketpair()
        self._thread: threading.Thread | None = None
        self._listens = self._stopped = self._paused = False
        self._path: str | None = None

    def start(self) -> None:
        """Raises RuntimeError if no thread can be started because of a limit or because the interpreter is exiting."""
        self._paused = False
        if self._thread is not None and self._thread.is_alive():
            return  # it was responding and did not pause in time, so it continues
        thread = _Thread(target=self._run, name="feedline-publish", daemon=True)
        thread.start()
        self._thread = thread  # only after start, since another thread may join it

    def stop(self) -> None:
        """Wakes the thread so that it ends. Never waits."""
        self._stopped = True
        self._remove()
        self._wake()

    def pause(self) -> None:
        """Ends the thread but keeps the socket: new clients wait for :meth:`start`."""
        self._paused = True
        self._wake()
        self.join()

    def join(self) -> None:
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_END_S)

    def close(self) -> None:
        for one in (self.listener, self._woken, self._wakes):
            one.close()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # the thread has ended
            self._wakes.send(b"w")

    def _run(self) -> None:
        self._listens = self._listens or self._listen()
        waiting = select.poll()  # select() does not support descriptors above 1023
        waiting.register(self.listener, select.POLLIN)
        waiting.register(self._woken, select.POLLIN)
        while self._listens and not self._stopped:
            if self._paused:
                return
            if self._woken.fileno() in dict(waiting.poll()):
                self._woken.recv(_WAKES)
            elif not self._accept():
                break
        self._remove()
        self.close()

    def _accept(self) -> bool:
        """Responds to one client; returns False if the process has no free file descriptors."""
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return False
        with connection, contextlib.suppress(OSError):
            self._answer(connection)
        return True

    def _listen(self) -> bool:
        for path in folders(os.geteuid()):
            with contextlib.suppress(OSError, Error):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(path, 0o700)
                folder = open_folder(path, os.geteuid())
                try:
                    name = f"{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}"
                    self._bind(folder, name)
                    self._path = os.path.join(os.path.abspath(path), name)
                    _clean(folder)
                finally:
                    os.close(folder)
                return True
        return False

    def _bind(self, folder: int, name: str) -> None:
        # Named only when it listens: a socket without a listener is considered dead and removed.
        unnamed = f".{name}.starting"
        self.listener.bind(f"/proc/self/fd/{folder}/{unnamed}")
        os.chmod(unnamed, 0o600, dir_fd=folder)
        self.listener.listen(_WAITING)
        os.rename(unnamed, name, src_dir_fd=folder, dst_dir_fd=folder)

    def _answer(self, connection: socket.socket) -> None:
        if peer(connection)[1] not in (0, os.geteuid()):
            return
        connection.settimeout(_ANSWER_S)
        connection.sendall(json.dumps(document()).encode())

    def _remove(self) -> None:
        if self._path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._path)


class _Thread(threading.Thread):
    """Called by tools that stop leftover threads, such as Lightning's tests."""

    def stop(self) -> None:
        """Stops publishing until a loader begins an epoch. The thread has ended when this method returns."""
        _end()
        if self is not threading.current_thread():
            self.join(_END_S)


def _started() -> _Server | None:
    try:
        server = _Server()
    except OSError:  # no more descriptors
        return None
    try:
        server.start()
    except RuntimeError:  # no thread can be started, at the interpreter's exit or because of a limit
        server.close()
        return None
    return server


def remove_if_dead(folder: int, name: str) -> bool:
    """Removes a socket if its process has ended; returns whether the process has ended."""
    try:
        connect(folder, name, 0.0).close()
    except ConnectionRefusedError:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
            return True
    except OSError:
        pass  # alive, but busy
    return False


def _clean(folder: int) -> None:
    for name in list(sockets(folder, os.geteuid()))[:_MOST_CLEANED]:
        if not os.path.exists(f"/proc/{name.partition('-')[0]}"):  # or it is in another container
            remove_if_dead(folder, name)


def _forget(number: int) -> None:
    global _server
    with _lock:
        _loaders.pop(number, None)
        if not _loaders and _server is not None:
            server, _server = _server, None
            server.stop()


def _watch_process() -> None:
    global _watches_process
    if not _watches_process:
        import atexit

        os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_forget_parent)
        atexit.register(_end)
        _watches_process = True


def _end() -> None:
    for number in list(_loaders):
        _forget(number)


def _before_fork() -> None:
    # our threads must not hold a lock at a fork, or the child would deadlock; Python also warns of threads at a fork
    server = _server
    if server is not None:
        server.pause()


def _after_fork() -> None:
    server = _server
    if server is not None:
        with contextlib.suppress(RuntimeError):
            server.start()


def _forget_parent() -> None:
    """Called in a forked child: the socket belongs to the parent."""
    global _lock, _server
    _lock = threading.RLock()
    if _server is not None:
        _server.close()
        _server = None
    _loaders.clear()
