# SPDX-License-Identifier: Apache-2.0
"""What alarms are judged by, and the shape of one. Each is a file of `alarms`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..findings import Entry, Finding, Threshold
from ..machine.gpu import Reading
from ..machine.host import Figures
from .published import Loader
from .rates import LoaderRates

LOOKS = 10  # one slow batch or one busy second is no alarm
WAIT_NOTE = Threshold(0.10, "of the loop's time: as of a warning of diagnose and trace")
LOADERS, MEMORY, HOST, GPUS = 100, 200, 300, 400  # the first turns of alarms about these
LESS_MEMORY = "less prefetching, fewer workers, smaller batches"  # in the order in which they cost least


@dataclass(frozen=True)
class Moment:
    """What one look found. `idle_s`: per loader, since its last batch."""

    loaders: tuple[tuple[str, Loader, LoaderRates | None, float], ...]  # name, totals, rates, idle_s
    host: Figures
    gpus: tuple[Reading, ...]


@dataclass(frozen=True)
class Seen:
    """The latest looks, the last of them now. `looks`: how many a state has to last for an alarm."""

    recent: Sequence[Moment]
    looks: int

    @property
    def now(self) -> Moment:
        return self.recent[-1]

    def held(self, values: Iterable[float | None]) -> float | None:
        """The mean over the last looks; None unless all of them are there."""
        known = [value for value in values if value is not None]
        return sum(known) / self.looks if len(known) == self.looks else None

    def own_gpus(self) -> Iterator[tuple[int, Reading]]:
        """The GPUs that are not another run's, with their places among all."""
        for at, gpu in enumerate(self.now.gpus):
            if not gpu.pids or set(gpu.pids) & set(self.now.host.pids):
                yield at, gpu

    def utilisations(self, gpu: Reading) -> list[float | None]:
        """Of the last looks."""
        return [g.utilisation for m in self.recent for g in m.gpus if g.index == gpu.index]


# Of each thing that it is about: its place among its like (0 where there is one), whether it is an alarm and not a note
# alone, and the sentence.
Told = Iterator[tuple[int, bool, str]]


@dataclass(frozen=True)
class Alarm:
    """What deserves a look at once.

    Attributes:
        page: what ``feedline explain`` prints, without the thresholds, which the file's constants give.
        turn: its place among the alarms of one loader, GPU or machine: see :data:`LOADERS` and the others.
        judges: whether it is so now.
    """

    page: Entry
    turn: int
    judges: Callable[[Seen], Told]

    def findings(self, seen: Seen) -> Iterator[tuple[int, Finding]]:
        for place, is_alarm, sentence in self.judges(seen):
            yield place, Finding(self.page.code, "critical" if is_alarm else "note", evidence=(sentence,))


def free_share(gpu: Reading) -> float | None:
    """Of a GPU's memory; None: it is not told."""
    if not gpu.memory_bytes or gpu.memory_used_bytes is None:
        return None
    return 1 - gpu.memory_used_bytes / gpu.memory_bytes


def gb(count: float) -> str:
    return f"{count / 1e9:.1f} GB"
