# SPDX-License-Identifier: Apache-2.0
"""Goals for Feedline's ratios to the peers: ratios within a round, their median and range, and the verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from rounds import Measured

_CPU = "cpu_s_per_1000"
BEST = "best peer"  # the best peer of that round, in any configuration


@dataclass(frozen=True)
class Bar:
    """The ratio of `figure` for `ours` to that for `over`; `inverse`: the reciprocal.

    If `over` is BEST, the other figure is the highest of all peers in that round (`least`: the lowest). Without `over`,
    the figure itself is the ratio.
    """

    words: str
    task: str
    ours: str
    over: str = BEST
    figure: str = "samples_per_s"
    at_least: float | None = None
    at_most: float | None = None
    inverse: bool = False
    least: bool = False

    def bound(self) -> dict[str, float]:
        return {"at_most": self.at_most} if self.at_most is not None else {"at_least": self.at_least or 0.0}


BARS = (
    *(
        Bar(
            f"region decode alone, {tables} tables: times libjpeg-turbo", "decoder", tables, "", "ratio", at_least=floor
        )
        for tables, floor in (
            ("photos, standard", 1.8),
            ("photos, optimised", 1.8),
            ("large, standard", 1.7),
            ("large, optimised", 1.7),
        )
    ),
    Bar("float32: times DataLoader + Pillow", "float32", "Feedline", "DataLoader + Pillow", at_least=4.5),
    Bar("float32: times the best peer", "float32", "Feedline", at_least=2.4),
    Bar("uint8: times the best peer", "uint8", "Feedline", at_least=2.0),
    Bar("uint8: share of bare libjpeg-turbo, 2 threads", "uint8", "Feedline", "regions, 2 threads", at_least=1.1),
    Bar("validation: times the best peer", "validate", "Feedline", at_least=2.2),
    Bar("large photos, exact: times the best peer", "large", "Feedline", at_least=1.6),
    Bar("large photos, exact: times tf.data", "large", "Feedline", "tf.data fused", at_least=1.6),
    Bar('large photos, fidelity="fast": times the best peer', "large", "Feedline, fast", at_least=2.2),
    Bar("decoded once, float32: times FFCV raw", "raw_float32", "Feedline, cached", "FFCV raw", at_least=1.5),
    Bar(
        "decoded once at 256, float32: times TurboLoader raw",
        "raw_float32",
        "Feedline, cached 256",
        "TurboLoader raw 256",
        at_least=1.5,
    ),
    Bar("decoded once, uint8: times FFCV raw", "raw_uint8", "Feedline, cached", "FFCV raw", at_least=1.5),
    Bar("rows: times DataLoader, no workers", "rows", "Feedline", "DataLoader", at_least=50),
    Bar("rows: share of NumPy's array[indices]", "rows", "Feedline", "NumPy by hand", at_least=0.9),
    Bar("tokens: times DataLoader, 2 workers", "tokens", "Feedline", "DataLoader", at_least=30),
    Bar("tokens: share of a widening copy", "tokens", "Feedline", "widening copy, 1 thread", at_least=0.7),
    Bar(
        "PSS of the process tree, to NumPy: share of the leanest peer",
        "float32",
        "Feedline, NumPy",
        figure="peak_pss",
        at_most=1.0,
        least=True,
    ),
    Bar(
        "first batch, index present: share of the quickest peer",
        "float32",
        "Feedline, tar",
        figure="first_batch_s",
        at_most=1.0,
        least=True,
    ),
    Bar(
        "gap between epochs: times shorter than DataLoader",
        "gap",
        "Feedline",
        "DataLoader + Pillow",
        figure="gap_s",
        at_least=20,
        inverse=True,
    ),
)

# Requested, but measured by another command.
ELSEWHERE = {"cold reads through a 5 ms-latency fault wrapper: share of the warm rate": "tools/bench --cold"}


def _other(bar: Bar, measured: Measured, peers: list[str], i: int) -> tuple[float, str] | None:
    """Returns the figure with which round `i` is compared, and its loader."""
    names = peers if bar.over == BEST else [bar.over]
    found = []
    for name in names:
        entry = measured.get((bar.task, name), [])[i : i + 1]
        if entry and entry[0] is not None and bar.figure in entry[0]:
            found.append((float(entry[0][bar.figure]), name))
    if not found:
        return None
    return min(found) if bar.least else max(found)


def evaluate(bar: Bar, measured: Measured, peers: list[str]) -> dict[str, Any]:
    """Returns a record with the ratio of each round that has both figures; "measured" is empty if no round has them.

    `peers` are those of the task. For rates, "by_cpu" has the ratios of samples per second of CPU time, which other
    work on the machine hardly affects.
    """
    ratios, against, by_cpu = [], [], []
    for i, entry in enumerate(measured.get((bar.task, bar.ours), [])):
        if entry is None or bar.figure not in entry:
            continue
        if not bar.over:
            ratios.append(float(entry[bar.figure]))
            continue
        other = _other(bar, measured, peers, i)
        if other is None:
            continue
        ours = float(entry[bar.figure])
        ratios.append(other[0] / ours if bar.inverse else ours / other[0])
        against.append(other[1])
        rival = measured[bar.task, other[1]][i]
        if bar.figure == "samples_per_s" and rival is not None and entry.get(_CPU) and rival.get(_CPU):
            by_cpu.append(float(rival[_CPU]) / float(entry[_CPU]))
    record: dict[str, Any] = {"goal": bar.words, **bar.bound(), "measured": ratios}
    if against:
        record["against"] = Counter(against).most_common(1)[0][0]
    if by_cpu:
        record["by_cpu"] = by_cpu
    return record
