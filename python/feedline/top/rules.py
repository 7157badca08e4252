# SPDX-License-Identifier: Apache-2.0
"""The data on which alarms are evaluated, and the interface of an alarm. Each alarm is a module in `alarms`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..findings import Entry, Finding, Threshold
from ..machine.gpu import Reading
from ..machine.host import Figures
from .published import Loader
from .rates import LoaderRates
from .stock_loops import LoopView

LOOKS = 10  # samples; one slow batch or one busy second is not an alarm
WAIT_NOTE = Threshold(
    0.10, "share of the loop's time from which a wait is reported as a note, as for warnings of diagnose and trace"
)
LOADERS, MEMORY, HOST, GPUS = 100, 200, 300, 400  # the first priorities of alarms about these
LESS_MEMORY = "less prefetching, fewer workers, smaller batches"  # cheapest first


@dataclass(frozen=True)
class Moment:
    """The results of one sample. `idle_s`: seconds since the last batch of each loader."""

    loaders: tuple[tuple[str, Loader, LoaderRates | None, float], ...]  # name, totals, rates, idle_s
    host: Figures
    gpus: tuple[Reading, ...]
    loops: tuple[LoopView, ...] = ()  # loops of loaders that do not publish counters


@dataclass(frozen=True)
class Seen:
    """The latest samples; the current one is the last. `looks`: number of samples for which a state must last to raise
    an alarm.
    """

    recent: Sequence[Moment]
    looks: int

    @property
    def now(self) -> Moment:
        return self.recent[-1]

    def held(self, values: Iterable[float | None]) -> float | None:
        """Returns the mean over the latest samples; None until there are enough samples."""
        known = [value for value in values if value is not None]
        return sum(known) / self.looks if len(known) == self.looks else None

    def own_gpus(self) -> Iterator[tuple[int, Reading]]:
        """Yields the GPUs that this run may use, with their positions in the list of all GPUs."""
        for at, gpu in enumerate(self.now.gpus):
            if not gpu.pids or set(gpu.pids) & set(self.now.host.pids):
                yield at, gpu

    def utilisations(self, gpu: Reading) -> list[float | None]:
        """Returns the utilisation in the latest samples."""
        return [g.utilisation for m in self.recent for g in m.gpus if g.index == gpu.index]


# For each subject: its index among subjects of its kind (0 if it is the only one), whether it is an alarm rather than a
# note, and the message.
Occurrences = Iterator[tuple[int, bool, str]]


@dataclass(frozen=True)
class Alarm:
    """A condition that needs attention immediately.

    Attributes:
        page: the text for ``feedline explain``, without the thresholds, which are constants in the alarm's file.
        priority: the alarm's priority among those of the same loader, GPU or machine; see :data:`LOADERS`,
        :data:`MEMORY`, :data:`HOST` and :data:`GPUS`.
        evaluate: evaluates the condition for the current sample.
    """

    page: Entry
    priority: int
    evaluate: Callable[[Seen], Occurrences]

    def findings(self, seen: Seen) -> Iterator[tuple[int, Finding]]:
        for location, is_alarm, sentence in self.evaluate(seen):
            yield location, Finding(self.page.code, "critical" if is_alarm else "note", evidence=(sentence,))


def free_share(gpu: Reading) -> float | None:
    """Returns the share of a GPU's memory that is free, or None if unknown."""
    if not gpu.memory_bytes or gpu.memory_used_bytes is None:
        return None
    return 1 - gpu.memory_used_bytes / gpu.memory_bytes


def gb(count: float) -> str:
    return f"{count / 1e9:.1f} GB"
