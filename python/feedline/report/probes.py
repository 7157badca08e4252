# SPDX-License-Identifier: Apache-2.0
"""Compares short measurements of two machines, to determine which of their differences can have an effect.

A probe does the same work on both machines, so the ratio of its results is the machines' effect on stages that do such
work. A fact that should affect a probe but does not is ruled out; otherwise the fact's effect is at most the probe's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .measured import FigureDifference, Work, figures_of

GROUP = "probes"
SHOWS = 0.1  # a probe that differs by less, or within its spread, counts as equal: clock rates vary
SHOWS_BUSY = 0.3  # the same if more programs than CPUs ran during either, as cores share caches and memory bandwidth
# The stages that do such work. Decoding represents all computation in the engine and in libraries.
STAGES = {
    "decode_per_s": frozenset(("decode", "transform", "batch")),
    "python_per_s": frozenset(("python", "collate", "hand-over")),
    "memory_bytes_per_s": frozenset(("batch", "collate", "hand-over")),
    "memory_all_bytes_per_s": frozenset(("batch", "collate", "hand-over")),
    "disk_bytes_per_s": frozenset(("storage",)),
    "disk_small_ms": frozenset(("storage",)),
    "matrix_products_per_s": frozenset(("step",)),
    "convolutions_per_s": frozenset(("step",)),
    "copy_bytes_per_s": frozenset(("step",)),
}


@dataclass(frozen=True)
class Probe:
    """A probe that both records contain."""

    figure: FigureDifference
    shows: bool  # differs by more than its spread
    slower: float  # the time of the same work in B, as a multiple of A's
    share: float | None  # of the difference, at most; None if the stages' times were not recorded

    @property
    def name(self) -> str:
        return self.figure.name

    def words(self) -> str:
        """Returns a description such as ``images decoded by one thread: B takes 1.92 times as long``."""
        if not self.shows:
            return f"{self.figure.label}: as fast on both"
        ratio = self.slower if self.slower >= 1 else 1 / self.slower
        return f"{self.figure.label}: B takes {ratio:.2f} times as {'long' if self.slower >= 1 else 'short'}"


def probes_of(a: Mapping[str, Any], b: Mapping[str, Any], work: Work, speed: float | None) -> list[Probe]:
    """Returns the probes that two records contain; empty if either record has no probes."""
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


def load_of(record: Mapping[str, Any]) -> str:
    """Returns the load of a busy machine as text, or "" if the machine was not busy or its load is unknown.

    CPU time of other programs during the run is preferred to the load, which includes the run itself.
    """
    host = (record.get("summary") or {}).get("host") or {}
    others, cpus = host.get("others_cpus"), host.get("cpus")
    if others is not None and cpus:
        return f"other programs used {others:.1f} of {cpus:g} CPUs" if others > cpus / 4 else ""
    if not is_busy(record):
        return ""
    machine = record["machine"]
    return f"a load of {machine['load_1min']:.1f} on {machine['usable_cpus']:g} CPUs"


def of_fact(probes: Iterable[Probe], names: Iterable[str]) -> tuple[bool | None, float | None, str]:
    """Returns the result of the probes that a fact should affect: (whether one shows an effect, its largest share,
    description).

    The first value is None if none of the probes was measured on both sides; the second is None if the share is
    unknown.
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
