# SPDX-License-Identifier: Apache-2.0
"""Formats the figures as Markdown: a table per task, the goals, and the skipped loaders."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from rounds import Key, Measured, median, values
from tasks import Task

# column, figure, unit, format; columns without any figure in a task are omitted
_COLUMNS = (
    ("CPU-s per 1,000", "cpu_s_per_1000", 1, ".3g"),
    ("first batch, s", "first_batch_s", 1, ".3f"),
    ("epoch gap, ms", "gap_s", 1e3, ".1f"),
    ("PSS, MB", "peak_pss", 1e-6, ".0f"),
    ("held above bare, MB", "peak_bytes_above_bare", 1e-6, ".0f"),
)

Entries = Sequence[dict[str, Any] | None]


def spread(found: Sequence[float], form: str) -> str:
    """Formats the median, and in brackets the lowest and the highest value."""
    middle = format(statistics.median(found), form)
    return f"{middle} ({min(found):{form}} to {max(found):{form}})" if len(found) > 1 else middle


def _cell(entries: Entries, figure: str, scale: float, form: str) -> str:
    value = median(entries, figure)
    return "" if value is None else format(scale * value, form)


def _rate_form(rates: Sequence[float]) -> str:
    return ",.0f" if statistics.median(rates) >= 100 else ",.2f"


def _row(name: str, note: str, entries: Entries, ours: float, columns: Sequence[Any]) -> list[str]:
    rates = _rates(entries)
    share = f"{statistics.median(rates) / ours:.2f}" if ours else ""
    cells = [_cell(entries, figure, unit, form) for _, figure, unit, form in columns]
    return [name, spread(rates, _rate_form(rates)), share, *cells, note]


def _rates(entries: Entries) -> list[float]:
    return values(entries, "samples_per_s") or values(entries, "ratio")


def task_table(task: Task, measured: Measured) -> str:
    """Returns loaders and limits from fast to slow; shares are relative to the row called Feedline."""
    noted = [(loader.name, loader.note) for loader in task.loaders] + [(name, "no loader") for name in task.limits]
    rows = [(name, note, measured.get((task.name, name), [])) for name, note in noted]
    rows = sorted((row for row in rows if _rates(row[2])), key=lambda row: -statistics.median(_rates(row[2])))
    if not rows:
        return ""
    ours = next((statistics.median(_rates(entries)) for name, _, entries in rows if name == "Feedline"), 0.0)
    columns = [column for column in _COLUMNS if any(values(entries, column[1]) for _, _, entries in rows)]
    rate = task.unit if task.unit == "times" else f"{task.unit}/s"
    lines = [["loader", rate, "of ours", *(column[0] for column in columns), "otherwise"]]
    lines += [_row(name, note, entries, ours, columns) for name, note, entries in rows]
    text = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([f"**{task.name}**: {task.title}", "", text[0], f"|{'---|' * len(lines[0])}", *text[1:]])


def heading(started: float, rounds: int, commit: str, machine: dict[str, Any]) -> str:
    """Returns the date, the subject and the machine of the figures."""
    day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(started))
    return (
        f"{day} UTC, commit {commit or 'unknown'}, {rounds} round{'s' * (rounds != 1)}, {machine['cpus']} CPUs of "
        f"{machine['cpu']}, {machine['memory_gib']} GiB, Linux {machine['kernel']}, Python {machine['python']}"
    )


def bars_table(records: Sequence[dict[str, Any]], elsewhere: dict[str, str]) -> str:
    lines = [
        "**bars**: ratios within a round",
        "",
        "| bar | asked | measured | by CPU-s | against | |",
        "|---|---|---|---|---|---|",
    ]
    for record in records:
        asked = f"≥ {record['at_least']:g}" if "at_least" in record else f"≤ {record['at_most']:g}"
        measured = spread(record["measured"], ".2f") if record["measured"] else ""
        by_cpu = spread(record["by_cpu"], ".2f") if "by_cpu" in record else ""
        verdict = "not measured" if not record["measured"] else "met" if is_met(record) else "missed"
        lines.append(
            f"| {record['goal']} | {asked} | {measured} | {by_cpu} | {record.get('against', '')} | {verdict} |"
        )
    lines += [f"| {words} | | | | | not measured here: `{command}` |" for words, command in elsewhere.items()]
    return "\n".join(lines)


def is_met(record: dict[str, Any]) -> bool:
    value = statistics.median(record["measured"])
    return bool(value >= record["at_least"] if "at_least" in record else value <= record["at_most"])


def skipped_list(skipped: dict[Key, str]) -> str:
    """Returns all loaders without a figure, with the reason; tasks with the same reason are combined."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for (task, name), reason in skipped.items():
        reasons.setdefault((name, reason), []).append(task)
    lines = [f"- {name} ({', '.join(tasks)}): {reason}" for (name, reason), tasks in reasons.items()]
    return "\n".join(["**skipped**", "", *(lines or ["- none"])])
