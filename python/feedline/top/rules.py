# SPDX-License-Identifier: Apache-2.0
"""The data that alarms are evaluated on, and the interface of an alarm. Each alarm is a file in `alarms`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..findings import Entry, Finding, Threshold
from ..machine.gpu import Reading
from ..machine.host import Figures
from .published import Loader
from .rates import LoaderRates

LOOKS = 10  # samples; one slow batch or one busy second is not an alarm
WAIT_NOTE = Threshold(0.10, "of the loop's time; the same as for warnings of diagnose and trace")
LOADERS, MEMORY, HOST, GPUS = 100, 200, 300, 400  # the first priorities of alarms about these
LESS_MEMORY = "less prefetching, fewer workers, smaller batches"  # cheapest first


@dataclass(frozen=True)
class Moment:
    """The result of one sample. `idle_s`: seconds since each loader's last batch."""

    loaders: tuple[tuple[str, Loader, LoaderRates | None, float], ...]  # name, totals, rates, idle_s
    host: Figures
    gpus: tuple[Reading, ...]


@dataclass(frozen=True)
class Seen:
    """The latest samples, the current one last. `looks`: how many samples a state must last to raise an alarm."""

    recent: Sequence[Moment]
    looks: int

    @property
    def now(self) -> Moment:
        return self.recent[-1]

    def held(self, values: Iterable[float | None]) -> float | None:
        """The mean over the latest samples; None until there are enough."""
        known = [value for value in values if value is not None]
        return sum(known) / self.looks if len(known) == self.looks else None

    def own_gpus(self) -> Iterator[tuple[int, Reading]]:
        """The GPUs that this run may use, with their positions in the full list."""
        for at, gpu in enumerate(self.now.gpus):
            if not gpu.pids or set(gpu.pids) & set(self.now.host.pids):
                yield at, gpu

    def utilisations(self, gpu: Reading) -> list[float | None]:
        """Utilisation in the latest samples."""
        return [g.utilisation for m in self.recent for g in m.gpus if g.index == gpu.index]


# For each subject: its index among subjects of its kind (0 if it is the only one), whether it is an alarm rather than a
# note, and the message.
Occurrences = Iterator[tuple[int, bool, str]]


@dataclass(frozen=True)
class Alarm:
    """A condition that needs attention at once.

    Attributes:
        page: the text of ``feedline explain``, without the thresholds, which come from the file's constants.
        priority: its priority among the alarms of one loader, GPU or machine: see :data:`LOADERS` and the others.
        evaluate: evaluates the condition now.
    """

    page: Entry
    priority: int
    evaluate: Callable[[Seen], Occurrences]

    def findings(self, seen: Seen) -> Iterator[tuple[int, Finding]]:
        for place, is_alarm, sentence in self.evaluate(seen):
            yield place, Finding(self.page.code, "critical" if is_alarm else "note", evidence=(sentence,))


def free_share(gpu: Reading) -> float | None:
    """The free share of a GPU's memory, or None if unknown."""
    if not gpu.memory_bytes or gpu.memory_used_bytes is None:
        return None
    return 1 - gpu.memory_used_bytes / gpu.memory_bytes


def gb(count: float) -> str:
    return f"{count / 1e9:.1f} GB"
