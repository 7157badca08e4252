# SPDX-License-Identifier: Apache-2.0
"""Output of the hooks in one process: an event ring, which the first event opens, and small JSON notes.

A forked child gets its own ring.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from feedline import _engine
from feedline.profiler.probe import events, failures
from feedline.profiler.probe.budget import Budget, clock, cpu_clock
from feedline.profiler.probe.opened_files import OpenedFiles
from feedline.profiler.probe.wait_sampler import WaitSampler

CAPACITY = 16384  # events of 56 bytes
_MOST_NOTES = 16  # maximum per process: more adds no information, even in runs of days
_MOST_LOADERS = 64  # loaders whose settings are stored


class Recorder(Budget):
    """Recorder of one process. No method raises: if the probe fails, it stops recording."""

    def __init__(self, session: str) -> None:
        self.session = Path(session)
        self.silent = False  # in the copy for experiments and its workers, and between two sessions
        self.copied = False  # this process has been copied, or must not be
        # Called with each loader before its loop begins; set by a command. Returns whether the process was copied.
        self.offer: Callable[[Any], bool] = _declined
        self.load = (0, 0)  # cost of loading the probe: ns of CPU, ns
        self.sessions = 0  # sessions that ended in this process: a notebook has one per profiled cell
        self.at_end: list[Callable[[], None]] = []  # called at the end of a session
        self.passes = 0  # calls to iter() so far; forked workers inherit the number
        self.opened = OpenedFiles(self)
        self.waits = WaitSampler(self)
        super().__init__()
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def end(self) -> None:
        """Stops recording in this process until `restart` is called."""
        for ending in self.at_end:
            with contextlib.suppress(Exception):
                ending()
        self.at_end.clear()
        self.opened.write()
        self.waits.write()
        self.silent = True
        self.sessions += 1

    def restart(self, session: str) -> None:
        """Starts another session in the same process."""
        self.session = Path(session)
        self.silent = self.copied = False
        self.offer, self.passes = _declined, 0
        self.reset()

    def reset(self) -> None:
        self.opened.restart()
        self.waits.restart()
        self._ring: _engine.EventRing | None = None
        self._failed = False
        self._opening = threading.Lock()
        self.begin()
        self.__dict__.pop("record", None)
        self.in_worker = False
        # a worker's recorded finished batches, by id(), and the kind of their packing event; None if unknown
        self.sending: dict[int, int] | None = None
        self._notes = 0
        self._names: dict[str, int] = {}
        self._loaders: dict[
            str, list[tuple[Callable[[], object] | None, int]]
        ] = {}  # by settings: their owner and number
        self._numbers = 0

    def record(self, kind: int, begin_ns: int, cpu_ns: int = 0, a: int = 0, b: int = 0, keep: bool = True) -> None:
        """Records an event from `begin_ns` until now. Once the ring is open, the ring's own method replaces this
        method.
        """
        ring = self._open()
        if ring is not None:
            ring.record(kind, begin_ns, cpu_ns, a, b, keep)

    def _open(self) -> _engine.EventRing | None:
        if self._failed or self.silent:
            return None
        with self._opening:
            if self._ring is None and not self._failed:
                try:
                    self._ring = self._make_ring()
                    self.record = self._ring.record  # type: ignore[method-assign]
                except Exception as error:
                    self._failed = True
                    self.note(f"process {os.getpid()} could not create its event file: {error}")
        return self._ring

    def _make_ring(self) -> _engine.EventRing:
        # process ids may be reused: the time makes the name unique
        ring = _engine.EventRing(str(self.session / f"{os.getpid()}.{clock()}.ring"), CAPACITY)
        begin = self.measured(lambda: _recorded(ring))
        ring.record(events.COST, begin, 0, int(self.event_ns), self.call_ns, True)
        if any(self.load):  # not in a forked child, which inherits it from its parent
            ring.record(events.STARTED, clock(), 0, *self.load, True)
            self.load = (0, 0)
        return ring

    def kind_of_transform(self, name: str) -> int | None:
        """Returns the event kind of this transform; None if there are too many names."""
        kind = self._names.get(name)
        if kind is None and len(self._names) < events.TRANSFORMS:
            kind = self._names[name] = events.FIRST_TRANSFORM + len(self._names)
            self.write_json(f"{os.getpid()}.names", {str(k): n for n, k in self._names.items()})
        return kind

    def record_loop(self) -> None:
        """Called when the first loop of this process begins. The run is sampled at the full rate from then on."""
        with contextlib.suppress(OSError):
            os.close(os.open(self.session / events.LOOPS, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def number_of_loader(self, facts: dict[str, Any], loader: object = None) -> int:
        """Returns the number of a loader with these settings; a script may create such a loader again in every epoch.

        Loaders that exist at the same time have different numbers, even with equal settings, since a loop may alternate
        between them.
        """
        alike = self._loaders.setdefault(repr(sorted(facts.items())), [])
        for position, (owner, number) in enumerate(alike):
            one = owner() if owner is not None else None
            if one is None or one is loader or len(alike) >= _MOST_LOADERS:
                alike[position] = (_weakly(loader), number)
                return number
        number = self._numbers
        self._numbers += 1
        alike.append((_weakly(loader), number))
        self.write_loader(number, facts)
        return number

    def write_loader(self, number: int, facts: dict[str, Any]) -> None:
        if number < _MOST_LOADERS:
            self.write_json(f"{os.getpid()}.{number}.loader", {**facts, "pid": os.getpid(), "number": number})

    def note(self, sentence: str) -> None:
        self._notes += 1
        if self._notes > _MOST_NOTES:
            return
        with contextlib.suppress(OSError), open(self.session / f"{os.getpid()}.note", "a") as file:
            file.write(sentence + "\n")

    def failed(self, error: Exception, iterator: object, loader: dict[str, Any] | None = None) -> None:
        """Records an error that ended a loop. `loader`: the loader's settings, if no iterator could be created."""
        with contextlib.suppress(Exception):
            if not self.silent and not self.in_worker:
                failures.await_death(error, iterator)
                workers = failures.workers_of(iterator)
                failures.write(self.session, failures.of_error(error, role="loop", workers=workers, loader=loader))

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        with contextlib.suppress(OSError, TypeError, ValueError):
            unfinished = self.session / f".{name}.{os.getpid()}"
            unfinished.write_text(json.dumps(value))
            unfinished.replace(self.session / name)

    def rewrite_loader(self, number: int, facts: dict[str, Any]) -> None:
        """Like write_loader, but for values that change often: overwrites the file in one call, which costs a tenth as
        much.
        """
        if number >= _MOST_LOADERS:
            return
        with contextlib.suppress(OSError, TypeError, ValueError):
            text = json.dumps({**facts, "pid": os.getpid(), "number": number}).encode()
            name = f"{self.session}/{os.getpid()}.{number}.loader"
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, text.ljust(os.fstat(file).st_size))  # trailing blanks are ignored in JSON
            finally:
                os.close(file)


def _declined(_loader: Any) -> bool:
    return False


def _weakly(loader: object) -> Callable[[], object] | None:
    try:
        return weakref.ref(loader)
    except TypeError:
        return None


def _recorded(ring: _engine.EventRing) -> None:
    """Does the same work as the hook of an event."""
    begin, cpu = clock(), cpu_clock()
    ring.record(0, begin, cpu_clock() - cpu, 0, 0, False)
