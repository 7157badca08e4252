# SPDX-License-Identifier: Apache-2.0
"""A process of a `WorkerPool`: a worker for several loaders, each with its own dataset, random numbers and memory.

    the pool   --- socket: session requests with descriptors --->   this process
    a loader   --- pipe: messages of one session --->   this process   --- pipe: answers --->   the loader

Sessions alternate after each message. When a session resumes, its process-wide state is restored: the generators of
random, NumPy and torch, torch's worker info, and torch's function for collating tensors.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch.utils.data._utils import collate as torch_collate
from torch.utils.data._utils import worker as torch_worker

from ..fetching import fetch
from .channel import BlockingPort
from .ring import ELSEWHERE, Control, Ring
from .serialization import Frame
from .worker import Service, Stopped, WorkerConfig, service_crashed, set_signals
from .worker_args import PassedFd, WorkerArgs, enable_gc, read_pickled_args

_LENGTH = struct.Struct("<Q")
FDS = 4  # per session: ring, arguments, tasks, results
_IDLE_S = 1.0  # how often an idle process checks that its parent is alive
_FULL_S = 0.01  # how often a process checks whether it may begin a deferred batch


@dataclass
class SessionRequest:
    """A request to start a session, which is sent together with the session's descriptors."""

    config: WorkerConfig  # without ring, stack descriptor and collate_fn
    worker: int
    ring: dict[str, int]
    occupied: list[tuple[int, int]]
    known: dict[str, str]  # name in the arguments -> name of the object that the process inherited


def send_session_request(connection: socket.socket, request: SessionRequest, fds: list[int]) -> None:
    body = pickle.dumps(request)
    socket.send_fds(connection, [_LENGTH.pack(len(body))], fds)
    connection.sendall(body)


def receive_session_request(connection: socket.socket) -> tuple[SessionRequest, list[int]] | None:
    """Returns None if the pool has ended."""
    head, fds, _, _ = socket.recv_fds(connection, _LENGTH.size, FDS, socket.MSG_CMSG_CLOEXEC)
    if len(head) < _LENGTH.size:
        return None
    missing, body = _LENGTH.unpack(head)[0], bytearray()
    while missing:
        part = connection.recv(missing)  # not more: the next request's descriptors would be lost
        if not part:
            return None
        body += part
        missing -= len(part)
    return pickle.loads(body), fds


class _SessionGlobals:
    """The process-wide state of a session, which is saved while other sessions run."""

    def __init__(self) -> None:
        self._generators = fetch.generator_states()
        self._info = torch_worker._worker_info
        self._collate = torch_collate.default_collate_fn_map.get(torch.Tensor)

    def put_back(self) -> None:
        fetch.put_generator_states(self._generators)
        torch_worker._worker_info = self._info
        torch_collate.default_collate_fn_map[torch.Tensor] = self._collate


class _PoolSession:
    """One loader's session."""

    def __init__(self, request: SessionRequest, fds: list[int], parent: int, shows_stack: bool) -> None:
        ring_fd, self._args_fd, tasks, results = fds
        self.worker = request.worker
        ring = Ring.attached(request.ring, ring_fd)
        control = self.control = ring.control(request.worker)
        control[Control.READY] = shows_stack
        self.fd = tasks
        self.port = BlockingPort(
            Connection(tasks, writable=False),
            Connection(results, readable=False),
            lambda: not control[Control.STOP] and os.getppid() == parent,
        )
        self._request, self._config = request, replace(request.config, ring=ring)
        self.service: Service | None = None
        self.waiting: deque[Frame] = deque()
        self.globals: _SessionGlobals | None = None

    def start(self, forked_with: Mapping[str, Any]) -> None:
        """Starts the session. The process-wide state must be unmodified."""
        known = {name: forked_with[there] for name, there in self._request.known.items()}
        worker_args: WorkerArgs | None = None
        error: Exception | None = None
        try:
            worker_args = read_pickled_args(self._args_fd, known)
            self._config.fetch = replace(self._config.fetch, collate_fn=worker_args.collate_fn)
        except Exception as raised:
            error = raised

        def loaded() -> WorkerArgs:
            if worker_args is None:
                raise error if error is not None else RuntimeError
            enable_gc()
            return worker_args

        self.service = Service(self._config, self.worker, self.port, self.control, self._request.occupied)
        self.service.start(loaded)

    def look(self) -> bool:
        """Reads the messages that have arrived. Returns False if the loader has closed this session."""
        frame = self.port.take()
        while frame is not None:
            self.waiting.append(frame)
            frame = self.port.take()
        return not self.port.ended and self.port.is_wanted()

    def is_put_off(self) -> bool:
        """Returns whether the loop waits for other workers and this session's batch would exceed the memory budget."""
        assert self.service is not None
        return self.control[Control.WANTED] == ELSEWHERE and self.service.writer.is_full()

    def answer(self) -> bool:
        assert self.service is not None
        return self.service.answer(self.waiting.popleft())

    def leave(self) -> None:
        self.service = None
        self.port.close()


class _PoolProcess:
    def __init__(self, connection: socket.socket, forked_with: Mapping[str, Any], parent: int, shows: bool) -> None:
        self._connection, self._forked_with, self._parent, self._shows_stack = connection, forked_with, parent, shows
        self._sessions: list[_PoolSession] = []
        self._pristine = _SessionGlobals()
        self._current: _PoolSession | None = None

    def run(self) -> None:
        """Runs until the pool ends this process."""
        while os.getppid() == self._parent:
            if self._has_session_request() and not self._open():
                return
            for session in list(self._sessions):
                if not session.look():
                    self._leave(session)
            ready = [session for session in self._sessions if session.waiting and not session.is_put_off()]
            for session in ready:
                self._answer(session)
            if not ready:
                self._wait(_FULL_S if any(session.waiting for session in self._sessions) else _IDLE_S)

    def _wait(self, seconds: float) -> None:
        poll = select.poll()
        for fd in (self._connection.fileno(), *(session.fd for session in self._sessions)):
            poll.register(fd, select.POLLIN)
        poll.poll(seconds * 1000)

    def _has_session_request(self) -> bool:
        return bool(select.select([self._connection], [], [], 0)[0])

    def _open(self) -> bool:
        received = receive_session_request(self._connection)
        if received is None:
            return False
        session = _PoolSession(*received, self._parent, self._shows_stack)
        self._sessions.append(session)
        self._activate(None)
        self._current = session
        self._run(session, lambda: session.start(self._forked_with))
        return True

    def _answer(self, session: _PoolSession) -> None:
        self._activate(session)

        def answered() -> None:
            if not session.answer():
                raise Stopped

        self._run(session, answered)

    def _activate(self, session: _PoolSession | None) -> None:
        if session is self._current and session is not None:
            return
        if self._current is not None:
            self._current.globals = _SessionGlobals()
        state = self._pristine if session is None else session.globals
        assert state is not None
        state.put_back()
        self._current = session

    def _run(self, session: _PoolSession, step: Callable[[], None]) -> None:
        """Runs a step of a session. An error ends only this session, and is sent to its loader as if the process had
        died.
        """
        try:
            step()
        except Stopped:
            self._leave(session)
        except BaseException as error:
            with contextlib.suppress(Stopped):
                service_crashed(session.service, session.port, session.worker, error)
            self._leave(session)

    def _leave(self, session: _PoolSession) -> None:
        self._sessions.remove(session)
        if session is self._current:
            self._activate(None)
            self._current = None
        session.leave()


def run_pool_process(
    connection: Connection,
    stacks: PassedFd,
    main_thread: bool,
    forked_with: Mapping[str, Any],
    inherited: Callable[[], None],
) -> None:
    """Main function of a pool's process. `forked_with`: the objects that the process has inherited."""
    parent = os.getppid()
    gc.freeze()  # the collector would write to inherited objects and thereby copy their pages
    inherited()
    shows_stack = set_signals(main_thread, stacks.fd, parent)
    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        connection.close()
        _PoolProcess(own, forked_with, parent, shows_stack).run()
