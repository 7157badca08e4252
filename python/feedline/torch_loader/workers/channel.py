# SPDX-License-Identifier: Apache-2.0
"""Passes frames over pipes. Each worker has its own pipe per direction, so that its death does not affect messages from
other workers.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection

from .ring_reader import RingReader
from .serialization import HEAD, Frame

_SET_PIPE_SIZE = 1031
_PIPE_BYTES = 1 << 20  # the maximum for an unprivileged process: room for thousands of small batches


def _prepare(connection: Connection) -> int:
    fd = connection.fileno()
    os.set_blocking(fd, False)
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, _SET_PIPE_SIZE, _PIPE_BYTES)
    return fd


def _close(connection: Connection) -> None:
    """Closes a connection that a forked process may close a second time.

    Connection.close() forgets the descriptor's number after it has closed it. In between, another thread may receive
    the same number for a new pipe and fork, and the forked process would then close this new pipe.
    """
    fd, connection._handle = connection._handle, None  # type: ignore[attr-defined]
    if fd is not None:
        os.close(fd)


class Outbox:
    """Writes frames without blocking; `flush` writes the remainder later."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._fd = _prepare(connection)
        self._waiting: deque[memoryview] = deque()

    def put(self, parts: list[bytes]) -> None:
        self._waiting.append(memoryview(b"".join(parts)))
        self.flush()

    def flush(self) -> None:
        while self._waiting:
            try:
                written = os.write(self._fd, self._waiting[0])
            except BlockingIOError:
                return
            except OSError:  # the other end is closed; the process's death is reported separately
                self._waiting.clear()
                return
            if written == len(self._waiting[0]):
                self._waiting.popleft()
            else:
                self._waiting[0] = self._waiting[0][written:]

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def close(self) -> None:
        _close(self._connection)


class Inbox:
    """Reads frames without blocking."""

    def __init__(self, connection: Connection, worker: int, reader: RingReader | None) -> None:
        self._connection = connection
        self.fd = _prepare(connection)
        self._worker, self._reader = worker, reader
        self._head = bytearray()
        self._body: bytearray | None = None
        self._filled = 0
        self.ended = False

    def take(self) -> Frame | None:
        """Returns the next frame, or None if it has not arrived completely; `ended` then shows whether it can still
        arrive.
        """
        try:
            while len(self._head) < HEAD.size:
                data = os.read(self.fd, HEAD.size - len(self._head))
                if not data:
                    self.ended = True
                    return None
                self._head += data
            if self._body is None:
                self._body = bytearray(HEAD.unpack(self._head)[0])
                self._filled = 0
            while self._filled < len(self._body):
                count = os.readv(self.fd, [memoryview(self._body)[self._filled :]])
                if count == 0:
                    self.ended = True
                    return None
                self._filled += count
        except BlockingIOError:
            return None
        except OSError:
            self.ended = True
            return None
        frame = Frame(self._head, self._body, self._worker, self._reader)
        self._head, self._body = bytearray(), None
        return frame

    def close(self) -> None:
        _close(self._connection)


class BlockingPort:
    """The two pipes of a worker. `is_wanted` is called about once per second, and while waiting; if it returns False,
    the worker ends.
    """

    def __init__(self, tasks: Connection, results: Connection, is_wanted: Callable[[], bool]) -> None:
        self._inbox = Inbox(tasks, 0, None)
        self._results = results
        self._fd = _prepare(results)
        self.is_wanted = is_wanted
        self._tasks_ready = select.poll()
        self._tasks_ready.register(self._inbox.fd, select.POLLIN)
        self._room = select.poll()
        self._room.register(self._fd, select.POLLOUT)

    @property
    def ended(self) -> bool:
        """Whether no more messages can arrive, according to the last read."""
        return self._inbox.ended

    def take(self) -> Frame | None:
        """Returns the next message, or None if none has arrived."""
        return self._inbox.take()

    def receive(self) -> Frame | None:
        """Returns the next message, or None if the loader no longer needs the worker."""
        while True:
            frame = self._inbox.take()
            if frame is not None:
                return frame
            if self._inbox.ended or not self.is_wanted():
                return None
            self._tasks_ready.poll(1000)

    def send(self, parts: list[bytes]) -> bool:
        data = memoryview(b"".join(parts))
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                if not self.is_wanted():
                    return False
                self._room.poll(1000)
            except OSError:
                return False
        return True

    def close(self) -> None:
        self._inbox.close()
        self._results.close()
