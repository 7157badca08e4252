# SPDX-License-Identifier: Apache-2.0
"""Compares short measurements of two machines, to find which of their differing facts can have an effect.

A probe does the same work on both machines, so its ratio is the machines' effect on the stages that do such work. If a
fact should show in a probe and does not, it is ruled out; if it shows, its effect is at most that of the probe.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .measured import FigureDifference, Work, figures_of

GROUP = "probes"
SHOWS = 0.1  # a probe that differs by less, or within its spread, counts as equal: clock rates vary
SHOWS_BUSY = 0.3  # likewise if more programs than CPUs ran during either, as cores share caches and memory bandwidth
# The stages that do such work. Decoding represents all computation in the engine and in libraries.
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
    """A probe that both records have."""

    figure: FigureDifference
    shows: bool  # differs by more than its spread
    slower: float  # the time of the same work in B, as a multiple of A's
    share: float | None  # of the difference, at most; None if the stages' times were not recorded

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
    """The probes of two records; empty if one of them has none."""
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
    """Whether other programs used all CPUs when the record was made."""
    machine = record.get("machine") or {}
    load, cpus = machine.get("load_1min"), machine.get("usable_cpus")
    return bool(load and cpus and load > cpus)


def of_fact(probes: Iterable[Probe], names: Iterable[str]) -> tuple[bool | None, float | None, str]:
    """The result of the probes that a fact would show in: (whether it shows, its largest share, in words).

    None if none of them was measured on both sides, or if the share of one that shows is unknown.
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
