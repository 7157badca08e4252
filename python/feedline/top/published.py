# SPDX-License-Identifier: Apache-2.0
"""Queries and validates the counters that running processes publish (:mod:`feedline.serving.publishing`).

A publishing process may hang, run another version of Feedline, or be malicious. Therefore responses are limited in time
and size, every number must be finite and non-negative, and text cannot move the terminal's cursor.
"""

from __future__ import annotations

import json
import math
import os
import socket
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from ..errors import Error
from ..machine.processes import clean
from ..serving import publishing

_ANSWER_BYTES = 1 << 20
_READ_BYTES = 1 << 16
_MOST_AT_ONCE = 32
_MOST_LOADERS = 64
_MOST_STAGES = 16
_MOST_BUCKETS = 64
_LARGEST = 1e18  # larger than any counter, and fits in an integer


@dataclass(frozen=True)
class Stage:
    """Totals for one stage of a loader, over all threads of the stage."""

    items: float
    bytes: float
    busy_s: float
    blocked_s: float
    starved_s: float
    latency_us: tuple[int, ...]  # [b]: number of items that took [2^b, 2^(b+1)) microseconds


@dataclass(frozen=True)
class Loader:
    """Totals of one loader; a value is None if the loader does not count it."""

    number: int
    kind: str
    source: str
    epoch: float | None
    batches_per_epoch: float | None
    threads: float | None  # or worker processes
    batches: float  # for a torch loader: in this epoch
    samples: float | None
    bad_samples: float
    wait_s: float | None  # time of the training loop in next()
    ready_batches: float | None
    held_bytes: float | None
    held_bytes_peak: float | None
    budget_bytes: float | None
    stages: Mapping[str, Stage] = field(default_factory=dict)


@dataclass(frozen=True)
class Process:
    """One process's answer."""

    pid: int
    user: int
    rank: int | None
    world_size: int | None
    time_s: float  # CLOCK_MONOTONIC of the process's machine when the answer was made
    loaders: tuple[Loader, ...]


@dataclass(frozen=True)
class Found:
    """Data published by all processes of a user, and errors for processes that could not be read."""

    processes: tuple[Process, ...]
    unanswered: tuple[int, ...]  # running processes that did not answer
    notes: tuple[str, ...]


def find(uid: int, timeout_s: float = 1.0) -> Found:
    """Queries all processes of a user, and forgets those that have ended."""
    processes: dict[int, Process] = {}
    unanswered: set[int] = set()
    notes: list[str] = []
    for path in publishing.folders(uid):
        try:
            folder = publishing.open_folder(path, uid)
        except FileNotFoundError:
            continue
        except (OSError, Error) as error:
            notes.append(f"{path}: {error.strerror}" if isinstance(error, OSError) and error.strerror else str(error))
            continue
        try:
            names = list(publishing.sockets(folder, uid))
            # concurrently, so that a hanging process does not delay the others
            with ThreadPoolExecutor(min(len(names), _MOST_AT_ONCE) or 1) as pool:
                for answer in pool.map(_ask, repeat(folder), names, repeat(uid), repeat(timeout_s)):
                    processes |= {answer.process.pid: answer.process} if answer.process else {}
                    unanswered |= {answer.unanswered} if answer.unanswered else set()
                    notes += [answer.note] if answer.note else []
        finally:
            os.close(folder)
    return Found(tuple(processes.values()), tuple(sorted(unanswered - set(processes))), tuple(notes))


@dataclass(frozen=True)
class _Answer:
    process: Process | None = None
    unanswered: int = 0
    note: str = ""


def _ask(folder: int, name: str, uid: int, timeout_s: float) -> _Answer:
    pid = 0
    try:
        with publishing.connect(folder, name, timeout_s) as connection:
            pid, user = publishing.peer(connection)
            if user not in (uid, 0):
                return _Answer(
                    note=f"process {pid} of user {user} responded for user {uid}, so its response is ignored"
                )
            answer = _received(connection, timeout_s)
        if not answer:  # the process was exiting
            return _Answer()
        # 0: the process is in another container and not visible here
        return _Answer(parse(answer, pid, user)) if pid else _Answer()
    except ConnectionRefusedError:
        publishing.remove_if_dead(folder, name)
        return _Answer()
    except Error as error:
        return _Answer(unanswered=pid, note=f"process {pid}: {error}")
    except OSError:
        return _Answer(unanswered=pid)


def _received(connection: socket.socket, timeout_s: float) -> bytes:
    deadline = time.monotonic() + timeout_s
    parts: list[bytes] = []
    size = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no complete response in time")
        connection.settimeout(left)
        part = connection.recv(_READ_BYTES)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > _ANSWER_BYTES:
            raise Error(f"the response has more than {_ANSWER_BYTES:,} bytes, so it is not a loader's counters")


def parse(answer: bytes, pid: int, user: int) -> Process:
    """Parses a response. The process id in the response is ignored.

    Raises:
        Error: the response is not valid for this version.
    """
    try:
        document = json.loads(answer)
    except (ValueError, RecursionError):
        raise Error("the response is truncated, or is not a loader's counters") from None
    version = document.get("feedline_counters") if isinstance(document, dict) else None
    if version != publishing.VERSION:
        raise Error(
            f"the process publishes version {clean(repr(version))}, but this version of Feedline reads "
            f"{publishing.VERSION}; use the same version of Feedline for both"
        )
    loaders = document.get("loaders")
    rows = loaders[:_MOST_LOADERS] if isinstance(loaders, list) else []
    time_s = _number(document.get("time_s"))
    if time_s is None:
        raise Error("the response has no time_s value")
    rank, world_size = _number(document.get("rank")), _number(document.get("world_size"))
    return Process(
        pid=pid,
        user=user,
        rank=None if rank is None else int(rank),
        world_size=None if world_size is None else int(world_size),
        time_s=time_s,
        loaders=tuple(_loader(i, row) for i, row in enumerate(rows) if isinstance(row, dict)),
    )


def _loader(index: int, row: dict[str, Any]) -> Loader:
    counters = row.get("counters")
    if not isinstance(counters, dict):
        counters = {}
    named = counters.get("stages")
    stages = dict(list(named.items())[:_MOST_STAGES]) if isinstance(named, dict) else {}
    read = {clean(name)[:16]: _stage(stage) for name, stage in stages.items() if isinstance(stage, dict)}
    consumer = read.get("consumer")
    wait_s = _number(counters.get("wait_s"))
    number = _number(row.get("number"))
    return Loader(
        number=index if number is None else int(number),
        kind=clean(row.get("kind", "")),
        source=clean(row.get("source", "")),
        epoch=_number(row.get("epoch")),
        batches_per_epoch=_number(row.get("batches_per_epoch")),
        threads=_number(counters.get("threads")),
        batches=_number(counters.get("batches")) or 0,
        samples=_samples(row, counters),
        bad_samples=_number(counters.get("bad_samples")) or 0,
        wait_s=consumer.starved_s if wait_s is None and consumer is not None else wait_s,
        ready_batches=_number(counters.get("ready_batches")),
        held_bytes=_number(counters.get("held_bytes")),
        held_bytes_peak=_number(counters.get("held_bytes_peak")),
        budget_bytes=_number(counters.get("budget_bytes")),
        stages={name: stage for name, stage in read.items() if name != "consumer"},
    )


def _samples(row: dict[str, Any], counters: dict[str, Any]) -> float | None:
    """Returns the number of samples delivered; for a torch loader, this is the number of batches times the batch size,
    so an epoch's last batch counts as a full batch.
    """
    batch_size, batches = _number(row.get("batch_size")), _number(counters.get("batches"))
    if row.get("kind") == "DataLoader":
        return None if batch_size is None or batches is None else batch_size * batches
    return _number(counters.get("samples"))


def _stage(values: dict[str, Any]) -> Stage:
    counts = values.get("latency_us")
    buckets = counts[:_MOST_BUCKETS] if isinstance(counts, list) else []
    return Stage(
        **{name: _number(values.get(name)) or 0.0 for name in ("items", "bytes", "busy_s", "blocked_s", "starved_s")},
        latency_us=tuple(int(_number(count) or 0) for count in buckets),
    )


def _number(value: Any) -> float | None:
    """Returns a finite number that is not negative, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) and 0 <= value <= _LARGEST else None
