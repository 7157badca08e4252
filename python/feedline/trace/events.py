# SPDX-License-Identifier: Apache-2.0
"""Stores the events of a trace as columns: an event takes about 30 bytes, compared with 300 in the file.

``ts`` and ``dur`` are in microseconds in every Chrome trace; torch writes nanoseconds as decimals. ``displayTimeUnit``
affects only the display. ``baseTimeNanoseconds`` (torch 2.3 and later) is the wall-clock time that corresponds to
``ts`` 0.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .memory import Allocations, note
from .reader import Reader

# torch before 1.11 used other names
_KINDS = {
    "cpu_op": "op",
    "user_annotation": "op",
    "operator": "op",
    "python_function": "python",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "runtime": "runtime",
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "overhead": "overhead",
    "feedline": "stage",
}
KINDS = tuple(dict.fromkeys(_KINDS.values()))
# Operators whose stacks are used; old traces store the stack in the operator's event.
_STACK_WANTED = (
    "aten::item",
    "aten::_local",
    "aten::nonzero",
    "aten::to",
    "aten::_to_copy",
    "aten::copy_",
    "aten::is_",
)
_MOST_STACKS = 100_000


class Columns:
    """Events of one kind. Arrays with one value per event, in file order; times are in nanoseconds.

    Attributes:
        start, end: int64.
        thread: int32, index in :attr:`Trace.threads`; the index of the stream for events on a device.
        name: int32, index in :attr:`Trace.names`.
        link: int64, -1 for none. For runtime calls and device events, `link` is the "correlation", which is equal for a
            call and the events that it started. For operators, `link` is the "External id". (Device events also have an
            "External id", but only newer versions of torch set it to that of their operator.)
        size: int64, bytes of a copy; 0 for other events.
        occupancy: float64, torch's estimate in percent; NaN if missing.
    """

    def __init__(self) -> None:
        self._start, self._end, self._link, self._size = array("q"), array("q"), array("q"), array("q")
        self._thread, self._name = array("i"), array("i")
        self._occupancy = array("d")

    def __len__(self) -> int:
        return len(self._start)

    def append(self, start: int, end: int, thread: int, name: int, link: int) -> None:
        self._start.append(start)
        self._end.append(end)
        self._thread.append(thread)
        self._name.append(name)
        self._link.append(link)

    def append_device(self, size: int, occupancy: float) -> None:
        """Completes an event on a device."""
        self._size.append(size)
        self._occupancy.append(occupancy)

    start: NDArray[np.int64] = property(lambda self: np.frombuffer(self._start, np.int64))  # type: ignore[assignment]
    end: NDArray[np.int64] = property(lambda self: np.frombuffer(self._end, np.int64))  # type: ignore[assignment]
    link: NDArray[np.int64] = property(lambda self: np.frombuffer(self._link, np.int64))  # type: ignore[assignment]
    size: NDArray[np.int64] = property(lambda self: np.frombuffer(self._size, np.int64))  # type: ignore[assignment]
    thread: NDArray[np.int32] = property(lambda self: np.frombuffer(self._thread, np.int32))  # type: ignore[assignment]
    name: NDArray[np.int32] = property(lambda self: np.frombuffer(self._name, np.int32))  # type: ignore[assignment]
    occupancy: NDArray[np.float64] = property(lambda self: np.frombuffer(self._occupancy))  # type: ignore[assignment]


@dataclass
class Trace:
    """The events of one file."""

    path: str
    header: dict[str, Any] = field(default_factory=dict)
    kinds: dict[str, Columns] = field(default_factory=lambda: {kind: Columns() for kind in KINDS})
    names: list[str] = field(default_factory=list)
    threads: list[tuple[Any, Any]] = field(default_factory=list)  # (process or device, thread or stream)
    stacks: dict[int, str] = field(default_factory=dict)  # by link, in old traces
    memory: dict[str, Allocations] = field(default_factory=dict)  # by device
    events: int = 0
    unreadable: int = 0
    damage: list[str] = field(default_factory=list)

    def __getitem__(self, kind: str) -> Columns:
        return self.kinds[kind]

    @property
    def device_properties(self) -> list[dict[str, Any]]:
        """The properties of each GPU reported by torch: ``name``, ``computeMajor`` and so on."""
        properties = self.header.get("deviceProperties")
        return [p for p in properties if isinstance(p, dict)] if isinstance(properties, list) else []

    def names_where(self, accepts: Callable[[str], object]) -> NDArray[np.bool_]:
        """Returns whether `accepts` is true for each name; index the result with a column's ``name``."""
        return np.fromiter((bool(accepts(name)) for name in self.names), np.bool_, len(self.names))


def read(path: str | os.PathLike[str], advance: Callable[[int], None] | None = None) -> Trace:
    """Reads the trace in the file `path`; see :class:`feedline.trace.reader.Reader` for the supported formats."""
    reader = Reader(path, advance)
    trace = Trace(str(path))
    names: dict[str, int] = {}
    threads: dict[tuple[Any, Any], int] = {}
    for event in reader.events():
        trace.events += 1
        phase = event.get("ph")
        if phase == "X":
            kind = _KINDS.get(str(event.get("cat", "")).lower())
            if kind is None:
                continue
            try:
                _append(trace, kind, event, names, threads)
            except (KeyError, TypeError, ValueError, OverflowError):
                trace.unreadable += 1
        elif phase == "i" and event.get("name") == "[memory]":
            note(trace.memory, event, threads)
    trace.names, trace.threads = list(names), list(threads)
    trace.header, trace.damage = reader.header, reader.damage
    return trace


def _append(
    trace: Trace, kind: str, event: dict[str, Any], names: dict[str, int], threads: dict[tuple[Any, Any], int]
) -> None:
    start = round(event["ts"] * 1000)
    end = start + max(0, round((event.get("dur") or 0) * 1000))
    args = event.get("args")
    if not isinstance(args, dict):
        args = {}
    link = args.get("External id" if kind == "op" else "correlation")
    link = link if type(link) is int else -1
    name = event.get("name")
    name = name if type(name) is str else str(name)
    size, occupancy = 0, float("nan")
    on_device = kind in ("kernel", "memcpy", "memset")
    track = (event.get("pid"), event.get("tid"))
    if on_device:
        track = (args.get("device", track[0]), args.get("stream", track[1]))
        size = int(args.get("bytes") or 0)
        percent = args.get("est. achieved occupancy %")
        occupancy = float(percent) if isinstance(percent, (int, float)) else occupancy
    thread = threads.setdefault(track, len(threads))
    trace.kinds[kind].append(start, end, thread, names.setdefault(name, len(names)), link)
    if on_device:
        trace.kinds[kind].append_device(size, occupancy)
    stack = args.get("Call stack") if kind == "op" else None
    if stack and name.startswith(_STACK_WANTED) and len(trace.stacks) < _MOST_STACKS:
        trace.stacks[link] = str(stack)
