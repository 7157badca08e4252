# SPDX-License-Identifier: Apache-2.0
"""A process of a `WorkerPool`: a worker of several loaders, of each with its own dataset, random numbers and memory.

    the pool   --- socket: OPEN (what a session needs, and its descriptors) --->   host
    a loader   --- pipe: messages of one session --->   host   --- pipe: answers --->   the loader

Sessions take turns, message by message. What is the process's and a session takes for its own is put back with each
turn: the generators of random, NumPy and torch, torch's worker info, and how torch collates tensors.
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
from .worker import Service, Spec, Stopped, service_crashed, set_signals
from .worker_args import PassedFd, Payload, begin_collecting, read_letter

_LENGTH = struct.Struct("<Q")
FDS = 4  # of a session: ring, payload, tasks, results
_IDLE_S = 1.0  # how often a process with nothing to do looks whether its parent is there
_FULL_S = 0.01  # and how often one that may not begin a batch looks whether it may


@dataclass
class Opening:
    """A new session, beside its descriptors."""

    spec: Spec  # without ring, descriptor of stacks and collate_fn
    worker: int
    ring: dict[str, int]
    occupied: list[tuple[int, int]]
    known: dict[str, str]  # name in the payload -> name of what the process was forked with


def send_opening(connection: socket.socket, opening: Opening, fds: list[int]) -> None:
    body = pickle.dumps(opening)
    socket.send_fds(connection, [_LENGTH.pack(len(body))], fds)
    connection.sendall(body)


def receive_opening(connection: socket.socket) -> tuple[Opening, list[int]] | None:
    """None: the pool has gone."""
    head, fds, _, _ = socket.recv_fds(connection, _LENGTH.size, FDS, socket.MSG_CMSG_CLOEXEC)
    if len(head) < _LENGTH.size:
        return None
    missing, body = _LENGTH.unpack(head)[0], bytearray()
    while missing:
        part = connection.recv(missing)  # not one byte more: the descriptors of the next one would be lost
        if not part:
            return None
        body += part
        missing -= len(part)
    return pickle.loads(body), fds


class _Turn:
    """What of the process a session has for its own, while others have their turns."""

    def __init__(self) -> None:
        self._generators = fetch.generator_states()
        self._info = torch_worker._worker_info
        self._collate = torch_collate.default_collate_fn_map.get(torch.Tensor)

    def put_back(self) -> None:
        fetch.put_generator_states(self._generators)
        torch_worker._worker_info = self._info
        torch_collate.default_collate_fn_map[torch.Tensor] = self._collate


class _Guest:
    """One loader's session."""

    def __init__(self, opening: Opening, fds: list[int], parent: int, shows_stack: bool) -> None:
        ring_fd, self._letter, tasks, results = fds
        self.worker = opening.worker
        ring = Ring.attached(opening.ring, ring_fd)
        control = self.control = ring.control(opening.worker)
        control[Control.READY] = shows_stack
        self.fd = tasks
        self.port = BlockingPort(
            Connection(tasks, writable=False),
            Connection(results, readable=False),
            lambda: not control[Control.STOP] and os.getppid() == parent,
        )
        self._opening, self._spec = opening, replace(opening.spec, ring=ring)
        self.service: Service | None = None
        self.waiting: deque[Frame] = deque()
        self.turn: _Turn | None = None

    def start(self, forked_with: Mapping[str, Any]) -> None:
        """In the turn of a process that has nothing to do with any session."""
        known = {name: forked_with[there] for name, there in self._opening.known.items()}
        payload: Payload | None = None
        error: Exception | None = None
        try:
            payload = read_letter(self._letter, known)
            self._spec.recipe = replace(self._spec.recipe, collate_fn=payload.collate_fn)
        except Exception as raised:
            error = raised

        def loaded() -> Payload:
            if payload is None:
                raise error if error is not None else RuntimeError
            begin_collecting()
            return payload

        self.service = Service(self._spec, self.worker, self.port, self.control, self._opening.occupied)
        self.service.start(loaded)

    def look(self) -> bool:
        """Takes what has come. False: the loader needs this session no more."""
        frame = self.port.take()
        while frame is not None:
            self.waiting.append(frame)
            frame = self.port.take()
        return not self.port.ended and self.port.is_wanted()

    def is_put_off(self) -> bool:
        """Whether the loop waits for others, and a batch of this one would need more memory than the budget has."""
        assert self.service is not None
        return self.control[Control.WANTED] == ELSEWHERE and self.service.writer.is_full()

    def answer(self) -> bool:
        assert self.service is not None
        return self.service.answer(self.waiting.popleft())

    def leave(self) -> None:
        self.service = None
        self.port.close()


class _Host:
    def __init__(self, connection: socket.socket, forked_with: Mapping[str, Any], parent: int, shows: bool) -> None:
        self._connection, self._forked_with, self._parent, self._shows_stack = connection, forked_with, parent, shows
        self._guests: list[_Guest] = []
        self._pristine = _Turn()
        self._current: _Guest | None = None

    def run(self) -> None:
        """Until the pool needs this process no more."""
        while os.getppid() == self._parent:
            if self._has_opening() and not self._open():
                return
            for guest in list(self._guests):
                if not guest.look():
                    self._leave(guest)
            ready = [guest for guest in self._guests if guest.waiting and not guest.is_put_off()]
            for guest in ready:
                self._answer(guest)
            if not ready:
                self._wait(_FULL_S if any(guest.waiting for guest in self._guests) else _IDLE_S)

    def _wait(self, seconds: float) -> None:
        poll = select.poll()
        for fd in (self._connection.fileno(), *(guest.fd for guest in self._guests)):
            poll.register(fd, select.POLLIN)
        poll.poll(seconds * 1000)

    def _has_opening(self) -> bool:
        return bool(select.select([self._connection], [], [], 0)[0])

    def _open(self) -> bool:
        received = receive_opening(self._connection)
        if received is None:
            return False
        guest = _Guest(*received, self._parent, self._shows_stack)
        self._guests.append(guest)
        self._take_turn(None)
        self._current = guest
        self._run(guest, lambda: guest.start(self._forked_with))
        return True

    def _answer(self, guest: _Guest) -> None:
        self._take_turn(guest)

        def answered() -> None:
            if not guest.answer():
                raise Stopped

        self._run(guest, answered)

    def _take_turn(self, guest: _Guest | None) -> None:
        if guest is self._current and guest is not None:
            return
        if self._current is not None:
            self._current.turn = _Turn()
        turn = self._pristine if guest is None else guest.turn
        assert turn is not None
        turn.put_back()
        self._current = guest

    def _run(self, guest: _Guest, step: Callable[[], None]) -> None:
        """What ends a session does not end the others': the loader is told, as where a process ends of it."""
        try:
            step()
        except Stopped:
            self._leave(guest)
        except BaseException as error:
            with contextlib.suppress(Stopped):
                service_crashed(guest.service, guest.port, guest.worker, error)
            self._leave(guest)

    def _leave(self, guest: _Guest) -> None:
        self._guests.remove(guest)
        if guest is self._current:
            self._take_turn(None)
            self._current = None
        guest.leave()


def run_host(
    connection: Connection,
    stacks: PassedFd,
    main_thread: bool,
    forked_with: Mapping[str, Any],
    inherited: Callable[[], None],
) -> None:
    """A process of a pool from start to end. `forked_with`: what it has by being forked."""
    parent = os.getppid()
    gc.freeze()  # the collector would write to all that was forked, and so copy it
    inherited()
    shows_stack = set_signals(main_thread, stacks.fd, parent)
    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        connection.close()
        _Host(own, forked_with, parent, shows_stack).run()
