# SPDX-License-Identifier: Apache-2.0
"""The interface of a loader's workers, which are processes, sessions in a pool's processes, or threads."""

from __future__ import annotations

from typing import Any, Protocol

from .process_workers import Died
from .worker import WorkerConfig


class Answer(Protocol):
    """A message from a worker. Either `decode` or `drop` is called, once."""

    task: int
    kind: int

    def nbytes(self) -> int:
        """Size in bytes; 0 if unknown."""

    def decode(self) -> Any: ...

    def occupied(self) -> list[tuple[int, int]]:
        """(start, size) of its blocks in shared memory."""

    def drop(self) -> None: ...


class WorkerGroup(Protocol):
    config: WorkerConfig
    workers: list[Any]

    def send(self, worker: int, task: int, kind: int, value: Any) -> None:
        """Does not wait."""

    def receive(self, timeout: float) -> tuple[int, Answer] | Died | None:
        """Returns the next reply and its worker, or a death; None after `timeout` seconds."""

    def leave(self, worker: int) -> None:
        """Ends a worker that has finished its tasks."""

    def skip_before(self, task: int) -> None:
        """Workers skip tasks with smaller numbers."""

    def want(self, worker: int, task: int) -> None:
        """Notes that the loop waits for this task."""

    def progress(self, worker: int) -> int:
        """A counter that grows with each sample begun."""

    def activity(self, worker: int) -> str: ...

    def stack(self, worker: int) -> str: ...

    def bytes_held(self) -> int: ...

    def close(self) -> None: ...
