# SPDX-License-Identifier: Apache-2.0
"""Short measurements of two machines by themselves, beside each other: which of their facts can have done something.

A probe is the same work on both, so its ratio is what the machine does to the stages that do such work. A fact that a
probe would show, and does not, is acquitted; where it shows, the fact gives no more than the probe does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .measured import FigureDifference, Work, figures_of

GROUP = "probes"
SHOWS = 0.1  # a probe that differs by less, or within its spread, is as fast on both: clocks come and go
SHOWS_BUSY = 0.3  # likewise, where more programs than CPUs ran beside either: cores share caches and memory with them
# Which stages do such work. Decoding stands for all computing of the engine and of libraries.
STAGES = {
    "decode_per_s": frozenset(("decode", "transform", "batch")),
    "python_per_s": frozenset(("python", "collate", "hand-over")),
    "memory_bytes_per_s": frozenset(("batch", "collate", "hand-over")),
    "memory_all_bytes_per_s": frozenset(("batch", "collate", "hand-over")),
    "disk_bytes_per_s": frozenset(("storage",)),
    "disk_small_ms": frozenset(("storage",)),
    "copy_bytes_per_s": frozenset(("step",)),
}


@dataclass(frozen=True)
class Probe:
    """One that both records have."""

    figure: FigureDifference
    shows: bool  # it differs, beyond its spread
    slower: float  # how many times as long the same work takes in B
    share: float | None  # of the difference, that it can give; None: the stages' times were not recorded

    @property
    def name(self) -> str:
        return self.figure.name

    def words(self) -> str:
        """``pictures decoded by one thread: B takes 1.92 times as long``."""
        if not self.shows:
            return f"{self.figure.label}: as fast on both"
        ratio = self.slower if self.slower >= 1 else 1 / self.slower
        return f"{self.figure.label}: B takes {ratio:.2f} times as {'long' if self.slower >= 1 else 'short'}"


def probes_of(a: Mapping[str, Any], b: Mapping[str, Any], work: Work, speed: float | None) -> list[Probe]:
    """Of two records; empty: one of them has none."""
    rows = [{"figures": one.get(GROUP) or []} for one in (a, b)]
    least = math.log(1 + (SHOWS_BUSY if is_busy(a) or is_busy(b) else SHOWS))
    found = []
    for figure in figures_of(*rows):
        if figure.ratio is None or figure.name not in STAGES:
            continue
        slower = figure.ratio if figure.better == "lower" else 1 / figure.ratio
        shows = figure.differs and abs(math.log(slower)) > least
        share = None if speed is None or not shows else work.share_of(STAGES[figure.name], slower, speed)
        found.append(Probe(figure, shows, slower, share))
    return found


def is_busy(record: Mapping[str, Any]) -> bool:
    """Whether other programs wanted all CPUs when the record was made."""
    machine = record.get("machine") or {}
    load, cpus = machine.get("load_1min"), machine.get("usable_cpus")
    return bool(load and cpus and load > cpus)


def of_fact(probes: Iterable[Probe], names: Iterable[str]) -> tuple[bool | None, float | None, str]:
    """What the probes that a fact would show in say: (it shows, the most that they give, in words).

    None: none of them was measured on both sides, or of what shows it is not known what it gives.
    """
    wanted = set(names)
    own = [probe for probe in probes if probe.name in wanted]
    if not own:
        return None, None, ""
    showing = [probe for probe in own if probe.shows]
    if not showing:
        return False, 0.0, "; ".join(probe.words() for probe in own)
    best = max(showing, key=lambda probe: -math.inf if probe.share is None else probe.share)
    return True, best.share, best.words()
