# SPDX-License-Identifier: Apache-2.0
"""The workers of an iterator that run in the processes of a `WorkerPool`."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from .pool import Copy, WorkerPool, name_in_pool_process
from .pool_process import SessionRequest, send_session_request
from .process_workers import JOIN_S, Died, ProcessWorkers
from .ring import ELSEWHERE, Control
from .serialization import Frame
from .shared_parts import Parts
from .worker import CRASHED, TASK, WorkerConfig
from .worker_args import PassedFd, PickledWorkerArgs, WorkerArgs


class NotShareable(Exception):
    """The loader needs its own processes; the message is the reason."""


class PoolWorkers(ProcessWorkers):
    """Workers whose processes outlive this group and also serve other groups.

    While the loop waits for this group, workers of other groups must not wait for memory, because a waiting process
    could not serve this group.
    """

    def __init__(
        self, config: WorkerConfig, worker_args: WorkerArgs, context: Any, pool: WorkerPool, member: int
    ) -> None:
        """Raises:
        NotShareable: the arguments cannot be sent to running processes.
        """
        self._pool, self._member = pool, member
        self._ended_sessions: set[int] = set()
        try:
            super().__init__(config, worker_args, context)
        except NotShareable:
            self._closed = True
            self._epoll.close()
            self.reader.close()
            pool.leave(self)
            raise
        pool.enter(self)

    def _start_all(self, workers: Iterable[int], occupied: Sequence[tuple[int, int]] = ()) -> None:
        pool = self._pool
        processes, have_just_begun = pool.processes(workers, self._member, self._context)
        self._stacks = pool.stacks  # type: ignore[assignment]
        copies = [process.copies.pop(self._member, None) for process in processes.values()]
        pickled, roles = self._args_fd(copies, have_just_begun)
        fetch = replace(self.config.fetch, collate_fn=tuple)  # the user's is part of the arguments
        config = replace(self.config, ring=None, stack_fd=None, fetch=fetch)
        known = {role: name_in_pool_process(self._member, role) for role in roles}
        for worker, process in processes.items():
            request = SessionRequest(config, worker, self.ring.layout(), list(occupied), known)

            def launched(tasks: Any, results: Any, process: Any = process, request: SessionRequest = request) -> Any:
                fds = [self.ring.fd, pickled.fd, tasks.fileno(), results.fileno()]
                with contextlib.suppress(OSError):  # it has died, which its sentinel reports
                    send_session_request(process.connection, request, fds)
                return process.handle

            self._connect(worker, launched)
        pickled.close()

    def _stacks_file(self) -> PassedFd | None:  # type: ignore[override]
        return self._pool.stacks

    def _args_fd(self, copies: list[Copy | None], are_new: bool) -> tuple[PickledWorkerArgs, Iterable[str]]:
        """Returns the arguments pickled for processes that inherited these copies, and the names of the copies that
        were used.
        """
        copy = copies[0]
        if copy is not None and all(other is not None and other.parts == copy.parts for other in copies):
            with contextlib.suppress(Exception):  # a native replacement of the dataset cannot be pickled
                if are_new or Parts(copy.roles.values()) == copy.parts:  # nothing has changed since
                    return PickledWorkerArgs(self._worker_args, copy.roles), copy.roles
        try:
            return PickledWorkerArgs(self._worker_args, {}), ()
        except Exception as error:
            raise NotShareable(f"{type(error).__name__}: {error}") from error

    def send(self, worker: int, task: int, kind: int, value: Any) -> None:
        control = self._controls[worker]
        if kind == TASK and control[Control.WANTED] == ELSEWHERE:
            control[Control.WANTED] = 0
        super().send(worker, task, kind, value)

    def receive(self, timeout: float) -> tuple[int, Frame] | Died | None:
        if timeout > 0:
            self._put_off_others()
        return super().receive(timeout)

    def _put_off_others(self) -> None:
        for other in self._pool.others(self):
            for control in other._controls:
                control[Control.WANTED] = ELSEWHERE

    def _drain(self, worker: int) -> None:
        while (frame := self._inboxes[worker].take()) is not None:
            self._ready.append((worker, frame))
            if frame.kind == CRASHED:
                self._ended_sessions.add(worker)

    def _bury(self, worker: int) -> None:
        if worker in self._ended_sessions or worker in self._leaving:  # the process continues
            self._dead.add(worker)
            self._forget(worker)
        else:
            super()._bury(worker)

    def respawn(self, worker: int, pending: list[tuple[int, int]]) -> None:
        self._ended_sessions.discard(worker)
        super().respawn(worker, pending)

    def has_lost_one(self) -> bool:
        """Returns whether a process has died, which may have been reported only to another loader."""
        return not all(process.is_alive() for process in self.workers)

    def stop(self) -> None:
        for control in self._controls:
            control[Control.STOP] = 1

    def close(self) -> None:
        """Ends the sessions and waits until they have ended. Batches that the user holds remain valid."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        self.stop()
        self._put_off_others()
        for outbox in self._outboxes:
            outbox.close()
        have_ended = self._await_ends()
        for inbox in self._inboxes:
            inbox.close()
        self._epoll.close()
        for entry in self._ready:
            if not isinstance(entry, Died):
                entry[1].drop()
        self._ready.clear()
        is_last = not self._pool.others(self)
        self._pool.leave(self)
        if have_ended or is_last:  # otherwise the session that still writes to the memory frees it
            self.reader.close()

    def _await_ends(self) -> bool:
        deadline = time.monotonic() + JOIN_S
        for worker, inbox in enumerate(self._inboxes):
            poll = select.poll()
            poll.register(inbox.fd, select.POLLIN)
            while True:
                self._drain(worker)
                left_s = deadline - time.monotonic()
                if inbox.ended or left_s <= 0:
                    break
                poll.poll(min(left_s, 0.1) * 1000)
        return all(inbox.ended for inbox in self._inboxes)
