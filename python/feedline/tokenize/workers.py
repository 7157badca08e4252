# SPDX-License-Identifier: Apache-2.0
"""Makes parts in worker processes, so that tokenizers and JSON parsing that hold the GIL run in parallel too."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import threading
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from ..data.map.map_processes import UNGUARDED, settle
from ..errors import ConfigError, Error, WorkerDiedError
from .documents import Part
from .part_files import Job, PartReport

_END_S = 5.0  # for a killed process to be reaped


def made(job: Job, parts: Sequence[Part], count: int) -> Iterator[PartReport]:
    """Makes parts and yields their reports in the order in which they finish.

    With one worker, this process makes them. If a part fails, the other workers are ended.
    """
    count = min(count, len(parts))
    if count <= 1:
        yield from map(job.make, parts)
        return
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # imports the main script
        raise ConfigError(f"tokenize: {UNGUARDED}")
    try:
        pickled = pickle.dumps(job)
    except Exception as error:
        raise ConfigError(
            f"tokenize: worker processes need a picklable source and tokenizer: {error}; pass paths, or num_workers=1"
        ) from None
    with contextlib.ExitStack() as held:
        workers = [held.enter_context(_worker(pickled)) for _ in range(count)]
        yield from _shared_out(workers, iter(parts))


class _Worker:
    """A process, the pipe to it, and the part that it makes."""

    def __init__(self, process: Any, connection: Connection) -> None:
        self.process, self.connection = process, connection
        self.part: Part | None = None

    def give(self, part: Part) -> None:
        self.part = part
        with contextlib.suppress(OSError):  # it died: reading its answer reports that
            self.connection.send(part)

    def died(self) -> WorkerDiedError:
        self.process.join(_END_S)
        pid, code = self.process.pid, self.process.exitcode
        how = "closed its pipe" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was killed by signal {-code}" + (
                " (SIGKILL, possibly because memory ran out)" if code == -9 else ""
            )
        number = self.part.number if self.part is not None else 0
        hint = "the same call resumes after the finished parts"
        if code is not None and code > 0:
            hint = f"{UNGUARDED}; {hint}"
        error = WorkerDiedError(f"tokenize: the worker process {pid} {how} while it made part {number}; {hint}")
        error.pid, error.exitcode = pid, code  # type: ignore[attr-defined]
        return error


def _shared_out(workers: Sequence[_Worker], parts: Iterator[Part]) -> Iterator[PartReport]:
    for worker in workers:
        worker.give(next(parts))
    busy = {worker.connection: worker for worker in workers}
    while busy:
        for ready in wait(list(busy)):
            assert isinstance(ready, Connection)
            worker = busy[ready]
            try:
                answer = ready.recv()
            except (EOFError, OSError):
                raise worker.died() from None
            if isinstance(answer, BaseException):
                raise answer
            part = next(parts, None)
            if part is None:
                del busy[ready]
            else:
                worker.give(part)
            yield answer


@contextlib.contextmanager
def _worker(pickled: bytes) -> Iterator[_Worker]:
    context = multiprocessing.get_context("spawn")  # a forked child could hang in the tokenizer's locks
    ours, theirs = context.Pipe()
    is_main = threading.current_thread() is threading.main_thread()
    process = context.Process(
        target=_serve, args=(theirs, pickled, os.getpid(), is_main), daemon=True, name="feedline-tokenize"
    )
    try:
        process.start()
    finally:
        theirs.close()
    try:
        yield _Worker(process, ours)
    finally:
        ours.close()
        process.kill()  # what it has not finished is made again
        process.join()


# ---- in the worker process ----


def _serve(connection: Connection, pickled: bytes, parent: int, is_main: bool) -> None:
    settle(parent, is_main)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # each process uses one CPU
    try:
        job: Job = pickle.loads(pickled)
    except BaseException as error:
        job_error: Exception | None = _sendable(error)
    else:
        job_error = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            part = connection.recv()
            try:
                answer: Any = job.make(part) if job_error is None else job_error
            except BaseException as error:
                answer = _sendable(error)
            connection.send(answer)


def _sendable(error: BaseException) -> Exception:
    """Returns an exception that can be pickled."""
    if isinstance(error, (Error, OSError)):
        with contextlib.suppress(Exception):
            if type(pickle.loads(pickle.dumps(error))) is type(error):
                return error
    return WorkerDiedError(f"tokenize: a worker process raised {type(error).__name__}: {error}")
