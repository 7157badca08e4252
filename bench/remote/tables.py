# SPDX-License-Identifier: Apache-2.0
"""Formats the figures as Markdown: a table of reads, one of epochs, the goals, and skipped clients."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import report
import training
from reading import CLIENTS, KINDS, LIMIT, OURS
from rounds import Key, Measured

Entries = Sequence[dict[str, Any] | None]


def epoch_name(ms: float | None) -> str:
    return "epoch, local" if ms is None else f"epoch, {ms:g} ms"


def _values(entries: Entries, figure: Callable[[dict[str, Any]], float]) -> list[float]:
    return [figure(entry) for entry in entries if entry]


def ratios(measured: Measured, one: Key, other: Key, figure: Callable[[dict[str, Any]], float]) -> list[float]:
    """Uses the rounds that have both figures."""
    pairs = zip(measured.get(one, []), measured.get(other, []), strict=False)
    return [figure(mine) / figure(theirs) for mine, theirs in pairs if mine and theirs]


def _cpu(entry: dict[str, Any]) -> float:
    return float(entry["cpu_s_per_gb"])


def _rate(entry: dict[str, Any]) -> float:
    return float(entry["samples_per_s"])


def _later_rate(entry: dict[str, Any]) -> float:
    return statistics.median(later["samples_per_s"] for later in entry["later"])


def _later_cpu(entry: dict[str, Any]) -> float:
    return statistics.median(later["cpu_s_per_1000"] for later in entry["later"])


def _image_cpu(entry: dict[str, Any]) -> float:
    return float(entry["cpu_s_per_1000"])


def _with_later(measured: Measured) -> Measured:
    return {key: [entry if entry and entry.get("later") else None for entry in row] for key, row in measured.items()}


def _bar(goal: str, found: list[float], against: str, **more: Any) -> dict[str, Any]:
    return {"goal": goal, "measured": found, "against": against, **more}


def bars(measured: Measured, latencies: Sequence[float]) -> list[dict[str, Any]]:
    found = []
    for protocol in ("http", "https", "s3"):
        for kind in KINDS:
            task = f"{kind.name}, {protocol}"
            times = ratios(measured, (task, OURS), (task, LIMIT), _cpu)
            found.append(_bar(f"CPU per GB, {task}: times libcurl's", times, LIMIT, at_most=1.1))
    local = (epoch_name(None), training.STORED)
    for ms in latencies:
        shares = ratios(measured, (epoch_name(ms), training.STORED), local, _rate)
        by_cpu = ratios(measured, local, (epoch_name(ms), training.STORED), _image_cpu)
        goal = f"epoch as stored at {ms:g} ms: share of the local rate"
        found.append(_bar(goal, shares, "local tars", at_least=0.9, **({"by_cpu": by_cpu} if by_cpu else {})))
        ahead = ratios(_with_later(measured), (epoch_name(ms), training.STORED), local, _later_rate)
        goal = f"the same once reading ahead (second epoch) at {ms:g} ms"
        found.append(_bar(goal, ahead, "local tars", at_least=0.9))
    far = max(latencies, default=0)
    if far > 0:
        pairs = zip(measured.get((epoch_name(far), training.STORED), []), measured.get(local, []), strict=False)
        trips = [1000 * (a["first_batch_s"] - b["first_batch_s"]) / far for a, b in pairs if a and b]
        found.append(_bar(f"first batch at {far:g} ms, index present: round trips", trips, "local tars", at_most=3))
    cached_local = (epoch_name(None), training.CACHED)
    shares = ratios(measured, (epoch_name(far), training.CACHED), cached_local, _later_rate)
    by_cpu = ratios(measured, cached_local, (epoch_name(far), training.CACHED), _later_cpu)
    goal = "epoch two with cache=: share of the local rate"
    found.append(_bar(goal, shares, "local tars", at_least=0.97, **({"by_cpu": by_cpu} if by_cpu else {})))
    return found


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]])


def reads_table(measured: Measured) -> str:
    rows = []
    for protocol in ("http", "https", "s3"):
        for kind in KINDS:
            task = f"{kind.name}, {protocol}"
            for client in CLIENTS:
                entries = measured.get((task, client.name), [])
                if not any(entries):
                    continue
                times = ratios(measured, (task, client.name), (task, LIMIT), _cpu)
                rate = statistics.median(_values(entries, lambda entry: entry["mb_per_s"]))
                rows.append([
                    task, client.name, report.spread(_values(entries, _cpu), ".2f"),
                    report.spread(times, ".2f") if times else "", f"{rate:,.0f}",
                ])  # fmt: skip
    head = ["reads", "client", "CPU s per GB", "times libcurl's", "MB/s"]
    return "**reads**: CPU time of only the client's process\n\n" + _table(head, rows) if rows else ""


def epochs_table(measured: Measured) -> str:
    rows = []
    for task in dict.fromkeys(task for task, _ in measured if task.startswith("epoch")):
        for loader in training.LOADERS:
            entries = measured.get((task, loader.name), [])
            if not any(entries):
                continue
            shares = ratios(measured, (task, loader.name), (epoch_name(None), loader.name), _rate)
            first = statistics.median(_values(entries, lambda entry: entry["first_batch_s"]))
            later = _values([entry for entry in entries if entry and entry["later"]], _later_rate)
            rows.append([
                task, loader.name, report.spread(_values(entries, _rate), ",.0f"),
                report.spread(shares, ".2f") if shares and task != epoch_name(None) else "",
                f"{statistics.median(_values(entries, lambda entry: entry['cpu_s_per_1000'])):.2f}",
                f"{first:.3f}", report.spread(later, ",.0f") if later else "", loader.note,
            ])  # fmt: skip
    head = ["epoch", "loader", "images/s", "of local", "CPU ms an image", "first batch, s", "later epochs", "otherwise"]
    words = "**epochs**: the first epoch, from iter() to its end, uint8, random_resized_crop 224 and flip"
    return f"{words}\n\n{_table(head, rows)}" if rows else ""


def text(measured: Measured, skipped: dict[Key, str], records: list[dict[str, Any]]) -> str:
    parts = [
        report.bars_table(records, {}),
        reads_table(measured),
        epochs_table(measured),
        report.skipped_list(skipped),
    ]
    return "\n\n".join(filter(None, parts))
