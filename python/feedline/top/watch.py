# SPDX-License-Identifier: Apache-2.0
"""Repeatedly samples one run: the loaders of all its processes, the host, the GPUs, and alarms."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..cost import NO_PRICE, Price, Spent, as_amounts
from ..errors import ConfigError
from ..findings import Finding
from ..findings.formats import as_alarm
from ..machine.gpu import Gpus, Reading
from ..machine.host import Figures, HostWatch
from ..machine.processes import Identity, command_of, identify
from ..machine.training import find_runs, loop_processes
from . import published
from .alarms import LOOKS, Alarms, Moment
from .rates import LoaderRates, between
from .spending import Spending
from .stock_loops import LoopView, StockLoops

_HISTORY = 60
_PERCENTILES = (("p50", 0.50), ("p90", 0.90), ("p99", 0.99))
_ANSWER_S = 0.5
_BETWEEN_EPOCHS_S = 3.0  # how long a loader that is absent between epochs is shown with its latest rates
_NEXT_EPOCH_S = 60.0  # how long a loader may be absent between epochs, for example during validation
Find = Callable[[int, float], published.Found]


@dataclass(frozen=True)
class LoaderView:
    """A loader of the run, as displayed. `rates` is None for the loader's first sample; `silent_s` is the number of
    seconds since the last response.
    """

    pid: int
    rank: int | None
    world_size: int | None
    totals: published.Loader
    rates: LoaderRates | None
    idle_s: float
    silent_s: float
    waits: tuple[float, ...]  # of the latest samples, the current one last

    @property
    def name(self) -> str:
        where = f"pid {self.pid}" if self.rank is None else f"rank {self.rank}"
        return f"{where}, loader {self.totals.number}"


@dataclass(frozen=True)
class View:
    """One sample."""

    process: Identity
    age_s: float
    ended: bool
    loaders: tuple[LoaderView, ...]
    host: Figures
    gpus: tuple[Reading, ...]
    gpus_unavailable: str
    alarms: tuple[Finding, ...]  # most severe first; an alarm is "critical"
    notes: tuple[str, ...]
    others: tuple[Identity, ...]  # other runs
    spent: Spent | None = None  # since the first sample, by waiting GPUs
    price: Price = NO_PRICE
    loops: tuple[LoopView, ...] = ()  # loops over loaders that do not publish counters
    commands: Mapping[int, str] = field(default_factory=dict)  # command lines of `host.processes`

    def as_dict(self) -> dict[str, Any]:
        """Returns the view as JSON data, for ``--json``."""
        cost = None if self.spent is None else as_amounts(self.spent, self.price)
        alarms = [as_alarm(alarm) for alarm in self.alarms]
        shown = {"alarms": alarms, "spent": cost, "price": self.price.gpu_hour}
        found = dataclasses.asdict(self) | shown
        for row in (*found["loaders"], *found["loops"]):
            row["wait"] = distribution(row["waits"])
        return found


def distribution(waits: Sequence[float]) -> dict[str, float] | None:
    """Returns the mean and percentiles of wait shares, one per sample; None if there are no samples."""
    if not waits:
        return None
    ordered = sorted(waits)
    at = {name: ordered[min(int(share * len(ordered)), len(ordered) - 1)] for name, share in _PERCENTILES}
    return {"samples": len(waits), "mean": sum(waits) / len(waits), **at}


class Watch:
    """Must be closed. `looks`: number of samples for which a state must last to raise an alarm. `others`: other runs on
    the machine. `find`, `gpus`: replaced in tests.
    """

    def __init__(
        self,
        process: Identity,
        interval_s: float,
        gpus: Gpus,
        looks: int = LOOKS,
        find: Find = published.find,
        price: Price = NO_PRICE,
        others: Sequence[Identity] = (),
    ) -> None:
        self._process, self._gpus, self._find, self._others = process, gpus, find, tuple(others)
        self._loops = StockLoops()
        self._tree: tuple[int, ...] = ()  # the process tree at the latest search for loops, and the loops found
        self._looping: tuple[int, ...] = ()
        self._commands: dict[int, str] = {}
        self._host = HostWatch(process.pid, interval_s)
        self._alarms = Alarms(looks)
        self._spending, self._looked_s = Spending(price), 0.0
        self._loaders: dict[tuple[int, int], _Followed] = {}
        self._answered_s: dict[int, float] = {}  # time of each process's latest answer
        self._view: View | None = None
        self._latest: tuple[LoaderView, ...] = ()  # if there were any

    def close(self) -> None:
        self._host.close()
        self._loops.close()

    def look(self) -> View:
        """Returns the current view, or the last one if the run has ended."""
        if self._view is not None and self._view.ended:
            return self._view
        host = self._host.look()
        found = self._find(self._process.user, _ANSWER_S)
        if not self._process.alive():  # the data just read may be from its shutdown
            return self._last()
        loaders = self._follow(found, {self._process.pid, *host.pids})
        gpus = self._gpus.read()
        seen = tuple((loader.name, loader.totals, loader.rates, loader.idle_s) for loader in loaders)
        self._latest = loaders or self._latest
        inside = {loader.pid for loader in loaders}
        now_s = time.monotonic()
        over_s = now_s - self._looked_s if self._looked_s else 0.0
        self._looked_s = now_s
        waiting = [(loader.pid, loader.rates) for loader in loaders]
        loops = self._look_at_loops(host, inside)
        self._view = View(
            process=self._process,
            age_s=self._process.age_s(),
            ended=False,
            loaders=loaders,
            host=host,
            gpus=gpus,
            gpus_unavailable=self._gpus.unavailable,
            alarms=self._alarms.evaluate(Moment(seen, host, gpus, loops)),
            notes=(*_silence(loaders, found, loops), *found.notes, *host.notes),
            others=self._other_runs(found, {self._process.pid, *host.pids}),
            spent=self._spending.add(over_s, waiting, gpus, (self._process.pid, *host.pids)),
            price=self._spending.price,
            loops=loops,
            commands=self._commands,
        )
        return self._view

    def _look_at_loops(self, host: Figures, publishing: set[int]) -> tuple[LoopView, ...]:
        """Returns the waits of the run's processes that have workers and do not publish counters."""
        if host.pids != self._tree:
            self._tree, self._looping = host.pids, loop_processes(host.pids)
        shown = [row.pid for row in host.processes]
        self._commands = {pid: self._commands.get(pid) or command_of(pid) for pid in shown}
        return self._loops.look([pid for pid in self._looping if pid not in publishing])

    def _other_runs(self, found: published.Found, tree: set[int]) -> tuple[Identity, ...]:
        publishing = _identities(p.pid for p in found.processes if p.pid not in tree and p.loaders)
        runs = {one.pid: one for one in (*publishing, *(one for one in self._others if one.alive()))}
        return tuple(one for pid, one in runs.items() if pid not in tree)

    def _of_the_epoch_before(self, pid: int, loader: published.Loader, here: set[int]) -> _Followed | None:
        """Returns the loader to which this iterator of a new epoch belongs: a similar loader that has disappeared."""
        for (other_pid, number), followed in self._loaders.items():
            if other_pid == pid and number not in here and followed.is_like(loader):
                return self._loaders.pop((other_pid, number))
        return None

    def _last(self) -> View:
        if self._view is None:
            raise ConfigError(f"top: process {self._process.pid} has ended")
        # its loaders may have been closed just before it ended
        loaders = self._view.loaders or self._latest
        self._view = dataclasses.replace(self._view, ended=True, loaders=loaders, alarms=(), notes=())
        return self._view

    def _follow(self, found: published.Found, tree: set[int]) -> tuple[LoaderView, ...]:
        now = time.monotonic()
        self._answered_s |= {process.pid: now for process in found.processes}
        for process in found.processes:
            if process.pid in tree:
                here = {loader.number for loader in process.loaders}
                for loader in process.loaders:
                    key = (process.pid, loader.number)
                    if key not in self._loaders:
                        self._loaders[key] = self._of_the_epoch_before(process.pid, loader, here) or _Followed(now)
                    self._loaders[key].add(process, loader, now)
        shown = []
        without = {process.pid for process in found.processes if not process.loaders}
        for (pid, number), followed in list(self._loaders.items()):
            silent = pid in found.unanswered and followed.seen_s == self._answered_s.get(pid)
            if silent or followed.seen_s == now:
                shown.append(followed.view(now, now - followed.seen_s))
            elif pid in without and followed.is_between_epochs(now):
                shown.append(followed.view(now, 0.0))
            elif now - followed.seen_s > _NEXT_EPOCH_S:  # it was closed or its process has ended
                del self._loaders[pid, number]
        return tuple(sorted(shown, key=lambda view: (view.rank or 0, view.pid, view.totals.number)))


class _Followed:
    """The samples of one loader, including those of its iterators for successive epochs."""

    def __init__(self, now: float) -> None:
        self.seen_s = self.moved_s = now
        self.waits: list[float] = []
        self.rates: LoaderRates | None = None
        self.latest: tuple[published.Process, published.Loader] | None = None

    def add(self, process: published.Process, loader: published.Loader, now: float) -> None:
        if self.latest is not None:
            before, totals = self.latest
            rates = between(totals, loader, process.time_s - before.time_s)
            self.rates = rates or self.rates
            if totals.batches != loader.batches or totals.epoch != loader.epoch:
                self.moved_s = now
            if rates is not None and rates.wait_share is not None:
                self.waits = [*self.waits, rates.wait_share][-_HISTORY:]
        self.latest, self.seen_s = (process, loader), now

    def is_like(self, loader: published.Loader) -> bool:
        return self.latest is not None and (self.latest[1].kind, self.latest[1].source) == (loader.kind, loader.source)

    def is_between_epochs(self, now: float) -> bool:
        """Whether this is a torch loader whose iterator has just ended; the next epoch will have another iterator."""
        is_torch = self.latest is not None and self.latest[1].kind == "DataLoader"
        return is_torch and now - self.seen_s <= _BETWEEN_EPOCHS_S

    def view(self, now: float, silent_s: float) -> LoaderView:
        assert self.latest is not None
        process, loader = self.latest
        idle_s = now - self.moved_s
        return LoaderView(
            process.pid,
            process.rank,
            process.world_size,
            loader,
            self.rates,
            idle_s,
            silent_s,
            tuple(self.waits),
        )


@dataclass(frozen=True)
class Choice:
    """The process to watch, and other runs on the machine."""

    process: Identity
    others: tuple[Identity, ...] = ()


def choose(
    pid: int | None, find: Find = published.find, root: Path = Path("/"), gpu_pids: Collection[int] = ()
) -> Choice:
    """Returns the process to watch: the given process; or else this user's newest process with Feedline loaders, or
    that process's launcher if it is a rank; or else a run that uses torch or a GPU (see `machine.training.find_runs`).

    Raises:
        ConfigError: there is no such process.
    """
    if pid is not None:
        return Choice(identify(pid, root))
    found = find(os.geteuid(), _ANSWER_S)
    publishing = {p.pid: p for p in found.processes if p.loaders}
    known = list(_identities(publishing, root))
    runs = find_runs(gpu_pids, root)
    if not known and not runs.found:
        raise ConfigError(
            "top: no process on this machine has a Feedline loader, uses torch, or computes on a GPU; `feedline top "
            "PID` shows any process" + "".join(f"; {note}" for note in (*found.notes, *runs.notes))
        )
    if not known:
        return Choice(runs.found[0], runs.found[1:])
    newest = max(known, key=lambda process: process.began_ticks)
    siblings = [p for p in known if p.parent == newest.parent and publishing[p.pid].rank is not None]
    ranks = len(siblings) > 1 and publishing[newest.pid].rank is not None
    return Choice(identify(newest.parent, root) if ranks else newest, runs.found)


def _identities(pids: Any, root: Path = Path("/")) -> Any:
    for pid in pids:
        try:
            yield identify(pid, root)
        except ConfigError:
            continue


def _silence(loaders: tuple[LoaderView, ...], found: published.Found, loops: tuple[LoopView, ...]) -> list[str]:
    silent = sorted({loader.pid for loader in loaders if loader.silent_s > 0})
    notes = [f"process {pid} does not respond: it is stopped, or holds the GIL" for pid in silent]
    notes += [f"the wait of pid {loop.pid} is not judged: {loop.missing}" for loop in loops if loop.missing]
    if loaders or found.unanswered:
        return notes
    if any(not loop.missing for loop in loops):
        notes.append(
            "waits are estimated from the loop's main thread; batches per second and single waits cannot be seen "
            "without changes to the script: feedline diagnose -- COMMAND"
        )
    elif not loops:
        notes.append("no Feedline loader publishes its counters here, so only the host's counters are shown")
        notes.append(
            "this run has no worker processes, so its loop's wait cannot be seen from outside: feedline diagnose -- "
            "COMMAND"
        )
    return notes
