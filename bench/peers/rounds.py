# SPDX-License-Identifier: Apache-2.0
"""Interleaved rounds of measurements; a failed measurement does not affect the others."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from launch import Skipped

Key = tuple[str, str]  # a task and a loader
Measured = dict[Key, list[dict[str, Any] | None]]  # one entry per round, so that ratios are taken within a round


def order(keys: Sequence[Key], rounds: int) -> Iterator[tuple[int, Key]]:
    """Returns the order of a round: every second one is reversed, so that a slow phase affects different loaders."""
    for i in range(rounds):
        for key in reversed(keys) if i % 2 else keys:
            yield i, key


def run(
    tasks: Mapping[Key, Callable[[], dict[str, Any]]], rounds: int, tell: Callable[[str], None]
) -> tuple[Measured, dict[Key, str]]:
    """Returns the figures of each task and round, or None if there are none, and the reasons for skipped loaders.

    A skipped loader is not run again.
    """
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
    """Returns the median over the rounds that have the figure; None if no round has it."""
    found = values(entries, figure)
    return statistics.median(found) if found else None
