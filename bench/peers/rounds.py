# SPDX-License-Identifier: Apache-2.0
"""Interleaved rounds of measurements, of which any may fail without taking the others along."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from launch import Skipped

Key = tuple[str, str]  # a task, and who
Measured = dict[Key, list[dict[str, Any] | None]]  # one entry a round, so that ratios are taken within a round


def order(keys: Sequence[Key], rounds: int) -> Iterator[tuple[int, Key]]:
    """Every second round runs backwards: what slows the machine down for a while hits nobody alone."""
    for i in range(rounds):
        for key in reversed(keys) if i % 2 else keys:
            yield i, key


def run(
    tasks: Mapping[Key, Callable[[], dict[str, Any]]], rounds: int, tell: Callable[[str], None]
) -> tuple[Measured, dict[Key, str]]:
    """The figures of every task in every round, None where there is none; and why those were skipped. Who was skipped
    once is not asked again."""
    measured: Measured = {key: [None] * rounds for key in tasks}
    skipped: dict[Key, str] = {}
    for i, key in order(list(tasks), rounds):
        if key in skipped:
            continue
        tell(f"round {i + 1} of {rounds}: {key[0]}, {key[1]}")
        try:
            measured[key][i] = tasks[key]()
        except Skipped as error:
            skipped[key] = str(error)
            tell(f"skipped: {error}")
    return measured, skipped


def values(entries: Sequence[dict[str, Any] | None], figure: str) -> list[float]:
    return [entry[figure] for entry in entries if entry is not None and figure in entry]


def median(entries: Sequence[dict[str, Any] | None], figure: str) -> float | None:
    """Over the rounds that have the figure; None where none has."""
    found = values(entries, figure)
    return statistics.median(found) if found else None
