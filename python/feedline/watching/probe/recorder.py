# SPDX-License-Identifier: Apache-2.0
"""Where the hooks of one process put what they see: its event ring, opened at the first event, and small JSON notes.

A forked child gets a ring of its own.
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
from feedline.watching.probe import events
from feedline.watching.probe.allowance import Allowance, clock, cpu_clock
from feedline.watching.probe.opened_files import OpenedFiles
from feedline.watching.probe.seen_waits import SeenWaits

CAPACITY = 16384  # events of 56 bytes
_MOST_NOTES = 16  # of a process: a run of days says no more
_MOST_LOADERS = 64  # whose settings are kept


class Recorder(Allowance):
    """Of one process. No method raises: a probe that fails falls silent."""

    def __init__(self, session: str) -> None:
        self.session = Path(session)
        self.silent = False  # in the copy for experiments and its workers, and between two sessions
        self.copied = False  # this process has been copied, or will not be
        # hears of each loader before a loop over it begins: whether it has made a copy of the process; a verb's own
        self.offer: Callable[[Any], bool] = _declined
        self.load = (0, 0)  # what loading the probe took: ns of CPU, ns
        self.sessions = 0  # that ended in this process: a notebook has one per watched cell
        self.at_end: list[Callable[[], None]] = []  # of a session; what is done then
        self.passes = 0  # calls of iter() so far; forked workers keep the number
        self.opened = OpenedFiles(self)
        self.waits = SeenWaits(self)
        super().__init__()
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def end(self) -> None:
        """No more is seen in this process until `restart`."""
        for ending in self.at_end:
            with contextlib.suppress(Exception):
                ending()
        self.at_end.clear()
        self.opened.write()
        self.waits.write()
        self.silent = True
        self.sessions += 1

    def restart(self, session: str) -> None:
        """Another session in the same process."""
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
        # a worker's finished batches that are seen, by id(), and the kind of their packing's event; None: not known
        self.sending: dict[int, int] | None = None
        self._notes = 0
        self._names: dict[str, int] = {}
        self._loaders: dict[
            str, list[tuple[Callable[[], object] | None, int]]
        ] = {}  # by settings: whose, and its number
        self._numbers = 0

    def record(self, kind: int, begin_ns: int, cpu_ns: int = 0, a: int = 0, b: int = 0, keep: bool = True) -> None:
        """An event that began at `begin_ns` and ends now. The ring's own method takes this one's place."""
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
                    self.note(f"process {os.getpid()} could not make its event file: {error}")
        return self._ring

    def _make_ring(self) -> _engine.EventRing:
        # a number of a process may come again: the time makes the name its own
        ring = _engine.EventRing(str(self.session / f"{os.getpid()}.{clock()}.ring"), CAPACITY)
        begin = self.measured(lambda: _recorded(ring))
        ring.record(events.COST, begin, 0, int(self.event_ns), self.call_ns, True)
        if any(self.load):  # not of a forked child, which has it from its parent
            ring.record(events.STARTED, clock(), 0, *self.load, True)
            self.load = (0, 0)
        return ring

    def kind_of_transform(self, name: str) -> int | None:
        """The kind of this transform's events; None once there are too many names."""
        kind = self._names.get(name)
        if kind is None and len(self._names) < events.TRANSFORMS:
            kind = self._names[name] = events.FIRST_TRANSFORM + len(self._names)
            self.write_json(f"{os.getpid()}.names", {str(k): n for n, k in self._names.items()})
        return kind

    def tell_of_loop(self) -> None:
        """The first of this process begins. From then on the run is sampled closely."""
        with contextlib.suppress(OSError):
            os.close(os.open(self.session / events.LOOPS, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def number_of_loader(self, facts: dict[str, Any], loader: object = None) -> int:
        """The number of a loader with these settings, which a script may make anew in every epoch.

        Two that live at the same time are two, whatever their settings: a loop may take from both in turn.
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

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        with contextlib.suppress(OSError, TypeError, ValueError):
            unfinished = self.session / f".{name}.{os.getpid()}"
            unfinished.write_text(json.dumps(value))
            unfinished.replace(self.session / name)

    def rewrite_loader(self, number: int, facts: dict[str, Any]) -> None:
        """As write_loader, for what changes again and again: in the file's place, by one call, a tenth of the cost."""
        if number >= _MOST_LOADERS:
            return
        with contextlib.suppress(OSError, TypeError, ValueError):
            text = json.dumps({**facts, "pid": os.getpid(), "number": number}).encode()
            name = f"{self.session}/{os.getpid()}.{number}.loader"
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, text.ljust(os.fstat(file).st_size))  # blanks behind a JSON text are nothing
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
    """As much work as the hook of an event."""
    begin, cpu = clock(), cpu_clock()
    ring.record(0, begin, cpu_clock() - cpu, 0, 0, False)
