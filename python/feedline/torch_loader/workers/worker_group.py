# SPDX-License-Identifier: Apache-2.0
"""The interface of a loader's workers, which are processes, sessions in a pool's processes, or threads."""

from __future__ import annotations

from typing import Any, Protocol

from .process_workers import Died
from .worker import WorkerConfig


class Answer(Protocol):
    """A message from a worker. The receiver must call either `decode` or `drop`, once."""

    task: int
    kind: int

    def nbytes(self) -> int:
        """Size in bytes; 0 if unknown."""

    def decode(self) -> Any: ...

    def occupied(self) -> list[tuple[int, int]]:
        """Returns (start, size) for each of the message's blocks in shared memory."""

    def drop(self) -> None: ...


class WorkerGroup(Protocol):
    config: WorkerConfig
    workers: list[Any]

    def send(self, worker: int, task: int, kind: int, value: Any) -> None:
        """Does not wait."""

    def receive(self, timeout: float) -> tuple[int, Answer] | Died | None:
        """Returns the next reply with its worker, or a death; None after `timeout` seconds."""

    def leave(self, worker: int) -> None:
        """Ends a worker that has finished its tasks."""

    def skip_before(self, task: int) -> None:
        """Makes workers skip tasks with smaller numbers."""

    def want(self, worker: int, task: int) -> None:
        """Records that the loop waits for this task."""

    def progress(self, worker: int) -> int:
        """Returns a counter that increases with each sample that the worker begins."""

    def activity(self, worker: int) -> str: ...

    def stack(self, worker: int) -> str: ...

    def bytes_held(self) -> int: ...

    def close(self) -> None: ...
