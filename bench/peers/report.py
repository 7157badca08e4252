# SPDX-License-Identifier: Apache-2.0
"""The figures as Markdown: a table per task, the bars, and who was skipped."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from rounds import Key, Measured, median, values
from tasks import Task

_COLUMNS = ("CPU-s per 1,000", "first batch, s", "epoch gap, ms", "PSS, MB", "held above bare, MB")


def spread(found: Sequence[float], form: str) -> str:
    """Median, and in brackets the lowest and the highest."""
    middle = format(statistics.median(found), form)
    return f"{middle} ({min(found):{form}} to {max(found):{form}})" if len(found) > 1 else middle


def _cell(entries: Sequence[dict[str, Any] | None], figure: str, scale: float, form: str) -> str:
    value = median(entries, figure)
    return "" if value is None else format(scale * value, form)


def _rate_form(rates: Sequence[float]) -> str:
    return ",.0f" if statistics.median(rates) >= 100 else ",.2f"


def _row(name: str, note: str, entries: Sequence[dict[str, Any] | None], best: float) -> str:
    rates = values(entries, "samples_per_s") or values(entries, "ratio")
    cells = [
        name,
        spread(rates, _rate_form(rates)),
        f"{statistics.median(rates) / best:.2f}" if best else "",
        _cell(entries, "cpu_s_per_1000", 1, ".2f"),
        _cell(entries, "first_batch_s", 1, ".2f"),
        _cell(entries, "gap_s", 1e3, ".0f"),
        _cell(entries, "peak_pss", 1e-6, ".0f"),
        _cell(entries, "peak_bytes_above_bare", 1e-6, ".0f"),
        note,
    ]
    return f"| {' | '.join(cells)} |"


def task_table(task: Task, measured: Measured) -> str:
    """Loaders and limits from fast to slow; the share is of the row called Feedline."""
    rows = [(loader.name, loader.note) for loader in task.loaders] + [(name, "no loader") for name in task.limits]
    found = []
    for name, note in rows:
        entries = measured.get((task.name, name), [])
        rate = median(entries, "samples_per_s") or median(entries, "ratio")
        if rate is not None:
            found.append((rate, name, note, entries))
    if not found:
        return ""
    found.sort(key=lambda row: -row[0])
    ours = next((rate for rate, name, _, _ in found if name == "Feedline"), 0.0)
    head = ["loader", f"{task.unit}{'/s' if task.unit != 'times' else ''}", "of ours", *_COLUMNS, "otherwise"]
    lines = [f"**{task.name}**: {task.title}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [_row(name, note, entries, ours) for _, name, note, entries in found]
    return "\n".join(lines)


def bars_table(records: Sequence[dict[str, Any]], elsewhere: dict[str, str]) -> str:
    lines = ["**bars**: ratios within a round", "", "| bar | asked | measured | against | |", "|---|---|---|---|---|"]
    for record in records:
        asked = f"≥ {record['at_least']:g}" if "at_least" in record else f"≤ {record['at_most']:g}"
        measured = spread(record["measured"], ".2f") if record["measured"] else ""
        verdict = "not measured" if not record["measured"] else "met" if is_met(record) else "missed"
        lines.append(f"| {record['goal']} | {asked} | {measured} | {record.get('against', '')} | {verdict} |")
    lines += [f"| {words} | | | | not measured here: `{command}` |" for words, command in elsewhere.items()]
    return "\n".join(lines)


def is_met(record: dict[str, Any]) -> bool:
    value = statistics.median(record["measured"])
    return bool(value >= record["at_least"] if "at_least" in record else value <= record["at_most"])


def skipped_list(skipped: dict[Key, str]) -> str:
    """Everybody of whom there is no figure, with the reason; the tasks of one reason together."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for (task, name), reason in skipped.items():
        reasons.setdefault((name, reason), []).append(task)
    lines = [f"- {name} ({', '.join(tasks)}): {reason}" for (name, reason), tasks in reasons.items()]
    return "\n".join(["**skipped**", "", *(lines or ["- nobody"])])
