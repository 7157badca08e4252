# SPDX-License-Identifier: Apache-2.0
"""Results of experiments after a run. Each subcommand has its own code that runs experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from feedline.profiler.intervals import GAIN, Shown, finite, gain_over_fewer, is_known, shown

# comparisons of copies to a device; and the cost of page-locking by itself
LOCKED, ASKED, OWN = "pin_memory=True", "non_blocking=True", "page-locking"
_TELLING = 0.5  # of a trial's rate: with a wider interval on either side, the rate is too uncertain
_COMPARISONS = {
    Shown.BETTER: "",
    Shown.NOT_BETTER: "no more than with fewer",
    Shown.UNDECIDED: "no gain shown",
    Shown.UNMEASURED: "",  # the interval is enough
}


@dataclass(frozen=True)
class Rung:
    """The rate of the loader with this number of workers, without the loop's work."""

    workers: int
    batches_per_s: float
    low: float  # 95 % interval
    high: float
    batches: int
    kept: bool = False  # gains over the trials with fewer workers
    comparison: str = ""  # with the trials with fewer workers, as text


@dataclass(frozen=True)
class Ceiling:
    """The loop's maximum rate, measured over consecutive steps without waiting for batches."""

    steps_per_s: float
    low: float  # 95 % interval
    high: float
    steps: int


@dataclass(frozen=True)
class Comparison:
    """A change and its effect on one metric, measured in alternation. Intervals are 95 %.

    The ratio is after / before in each round. Disturbances affect both values, so the ratio has a narrower interval.
    """

    change: str
    figure: str
    before: float
    before_low: float
    before_high: float
    after: float
    after_low: float
    after_high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    files: int | None = None  # files whose cached pages were dropped
    file_bytes: int | None = None
    own_ms: float | None = None  # cost of the change itself, outside of the figure

    @property
    def kept(self) -> bool:
        """Whether the change improves the metric by more than five percent, and the whole interval shows an
        improvement.
        """
        if not is_known(self.ratio_low, self.ratio_high):
            return False
        if self.figure.startswith("ms"):
            return self.ratio_high < 1 and self.ratio < 1 / GAIN
        return self.ratio_low > 1 and self.ratio > GAIN


@dataclass(frozen=True)
class DiskProbe:
    """Throughput and latency of the disk that stores the dataset's files. Intervals are 95 %."""

    files: int = 0
    device: str = ""
    bytes_per_s: float | None = None  # whole files, in reads of up to 1 MiB, four at a time
    bytes_per_s_low: float | None = None
    bytes_per_s_high: float | None = None
    read_bytes: float | None = None  # average size of a read
    latency_ms: float | None = None  # mean time of a 4 KiB read at a random offset
    latency_ms_low: float | None = None
    latency_ms_high: float | None = None
    refused: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Handing:
    """Cost in ms of transferring one batch from a worker to the loop, without producing it."""

    packing_ms: float  # CPU of the worker
    unpacking_ms: float  # CPU of the loop's process
    waiting_ms: float  # waiting of the loop's process for the worker's replies


@dataclass(frozen=True)
class DatasetCopies:
    """Memory of a dataset's Python objects, which each worker copies."""

    bytes: int  # a lower bound, per worker
    whole: bool  # whether all objects were counted


@dataclass(frozen=True)
class Experiments:
    rungs: list[Rung] = field(default_factory=list)
    refused: str | None = None  # why there are no trials
    ceiling: Ceiling | None = None
    comparisons: list[Comparison] = field(default_factory=list)
    not_tried: list[dict[str, str]] = field(default_factory=list)  # "change" and "why"
    disk: DiskProbe | None = None
    handing: Handing | None = None
    cold: bool = False  # the trials read their files from the disk, as the run did
    warm_because: str | None = None  # why the trials do not apply: the run read from the disk, but they did not
    dataset: DatasetCopies | None = None

    def as_dict(self) -> dict[str, Any]:
        made = asdict(self)
        made["comparisons"] = [{**asdict(one), "kept": one.kept} for one in self.comparisons]
        return {name: finite(value) for name, value in made.items()}

    def rates(self) -> dict[int, float]:
        """Batches per second by number of workers, for trials with a narrow enough interval: a one-second trial misses
        events that occur every ten seconds.
        """
        telling = (rung for rung in self.rungs if rung.high - rung.low <= 2 * _TELLING * rung.batches_per_s)  # not inf
        return {rung.workers: rung.batches_per_s for rung in telling}

    def rate_intervals(self) -> dict[int, tuple[float, float]]:
        """The 95 % interval of each trial that has one, including trials that are too uncertain for `rates()`."""
        return {rung.workers: (rung.low, rung.high) for rung in self.rungs if is_known(rung.low, rung.high)}

    def gain_over_fewer(self, present: int) -> dict[int, str]:
        """Results (values of Shown) by number of workers. Each trial is compared with the best trial with fewer
        workers; a trial that is no better than the trial with the current number of workers is NOT_BETTER.
        """
        found = _gain_over_fewer(self.rungs)
        figures = {rung.workers: (rung.batches_per_s, rung.low, rung.high) for rung in self.rungs}
        for workers in figures:
            if workers > present in figures and shown(figures[workers], figures[present]) is Shown.NOT_BETTER:
                found[workers] = Shown.NOT_BETTER
        return {workers: one.value for workers, one in found.items()}

    def copies(self) -> dict[str, tuple[float, float]]:
        """Copy time with each change, as an interval (low, high) of fractions of the time without the change.

        The entry OWN is the cost of page-locking itself, in the same form.
        """
        made = [one for one in self.comparisons if one.change in (LOCKED, ASKED)]
        shares = {one.change: (one.ratio_low, one.ratio_high) for one in made}
        for one in made:
            if one.own_ms is not None:
                shares[OWN] = (one.own_ms / max(one.before_high, 1e-9), one.own_ms / max(one.before_low, 1e-9))
        return shares


def keep(rungs: Sequence[Rung]) -> list[Rung]:
    """Returns the trials by number of workers; a trial is marked if its interval is above the best trial with fewer
    workers.
    """
    found = _gain_over_fewer(rungs)
    ordered = sorted(rungs, key=lambda rung: rung.workers)
    return [
        replace(rung, kept=found[rung.workers] is Shown.BETTER, comparison=_COMPARISONS[found[rung.workers]])
        for rung in ordered
    ]


def _gain_over_fewer(rungs: Sequence[Rung]) -> dict[int, Shown]:
    return gain_over_fewer({one.workers: (one.batches_per_s, one.low, one.high) for one in rungs})
