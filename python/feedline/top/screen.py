# SPDX-License-Identifier: Apache-2.0
"""Renders a view as lines of text, for any height and any width of at least 40 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.text import Text

from ..cost import amounts as spending
from . import amounts
from .amounts import count, percent, rate, size
from .rates import UNKNOWN, UNKNOWN_STAGE
from .watch import LoaderView, View, distribution

_LABEL = 7
_MOST_OTHERS = 3
_NAME = 24  # width of a loader's name in the table
_STAGE_COLUMNS = 57  # width of a stage's line without its bar
_MOST_ROWS, _FEW_ROWS = 32, 8  # processes shown in plain text and on a terminal
_FEW_SAMPLES = 5  # below this, a mean and percentiles are noise
_IDLE_S = 5.0  # seconds without a batch after which this is shown instead of the last waits
Section = list[Text]


def lines(view: View, width: int, height: int | None = None, selected: int = 0, paused: bool = False) -> Section:
    """Renders the view in at most `height` lines (None: unlimited) of at most `width` columns.

    If there is too little space, blank lines are dropped first, then the sections in `_GIVE`.
    """
    chosen = view.loaders[selected % len(view.loaders)] if view.loaders else None
    parts = {
        "title": [_title(view, paused)],
        "table": _table(view, selected, width),
        "loader": [] if chosen is None else _loader(chosen, width),
        "stages": [] if chosen is None else _stages(chosen, width),
        "loops": _loops(view, width),
        "processes": _processes(view, width, height),
        "host": _host(view, width) + _gpus(view, width) + _cost(view, width),
        "alarms": _alarms(view, width),
        "notes": _notes(view, width),
        "others": _others(view),
    }
    if height is not None:
        _shorten(parts, height, selected)
    shown = [part for part in parts.values() if part]
    spare = len(shown) if height is None else height - sum(map(len, shown))
    found: Section = []
    for i, part in enumerate(shown):
        # a blank line above each section but the first; the last sections have priority
        found += [Text()] * (i > 0 and len(shown) - i <= spare)
        found += part
    for line in found:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return found if height is None else found[:height]


# Sections to shorten when there are too few lines, in order, and how many of their lines remain.
_GIVE = (
    ("others", 0),
    ("notes", 0),
    ("processes", 0),
    ("table", 3),
    ("stages", 0),
    ("host", 5),
    ("loops", 1),
    ("table", 0),
    ("alarms", 2),
    ("loops", 0),
    ("host", 0),
)


def _shorten(parts: dict[str, Section], height: int, selected: int) -> None:
    over = sum(map(len, parts.values())) - height
    for name, least in _GIVE:
        part = parts[name]
        keep = max(len(part) - max(over, 0), min(least, len(part)))
        over -= len(part) - keep
        begin = 0
        if name == "table" and part:  # keep the selected one visible
            begin = max(0, min(selected % len(part) - keep // 2, len(part) - keep))
        parts[name] = part[begin : begin + keep]


def _title(view: View, paused: bool) -> Text:
    text = Text().append("feedline top", style="bold")
    text.append("  ended" if view.ended else "  paused" if paused else "", style="bold red" if view.ended else "yellow")
    text.append(f"  pid {view.process.pid}  {amounts.clock(view.age_s)}  ")
    return text.append(view.process.command, style="cyan")


def _table(view: View, selected: int, width: int) -> Section:
    """Returns one line per loader if there are several."""
    if len(view.loaders) < 2:
        return []
    names = [_name(loader, view) for loader in view.loaders]
    wide = min(max(map(len, names)), _NAME)
    found = []
    for i, (name, loader) in enumerate(zip(names, view.loaders, strict=True)):
        rates = loader.rates or UNKNOWN
        chosen = i == selected % len(view.loaders)
        text = Text(">" if chosen else " ", style="bold" if chosen else "")
        text.append(f" {name:<{wide}.{wide}}{rate(rates.samples_per_s):>10} samples/s")
        text.append(f"  wait {percent(rates.wait_share):>4}", style=_wait_style(rates.wait_share))
        text.append(f"  {_progress(loader)}  ")
        found.append(text.append(amounts.tail(loader.totals.source, width - text.cell_len)))
    return found


def _name(loader: LoaderView, view: View) -> str:
    """Returns the shortest unambiguous name of a loader."""
    alone = loader.rank is None and all(other.pid == loader.pid for other in view.loaders)
    return f"loader {loader.totals.number}" if alone else loader.name


def _progress(loader: LoaderView) -> str:
    totals = loader.totals
    epoch = "" if totals.epoch is None else f"epoch {totals.epoch:,.0f}"
    if totals.batches_per_epoch is None:
        return epoch
    of = f"{totals.batches_per_epoch:,.0f}"
    if totals.kind == "DataLoader":  # a torch loader counts batches per epoch, a Loader over all epochs
        of = f"{totals.batches:,.0f}/{of}"
    return f"{epoch}, {of} batches" if epoch else f"{of} batches"


def _loader(loader: LoaderView, width: int) -> Section:
    totals, rates = loader.totals, loader.rates or UNKNOWN
    named = _row(
        "loader", f"{loader.name}: {_progress(loader)}, {'' if totals.kind == 'Loader' else totals.kind + ' '}"
    )
    named.append(amounts.tail(totals.source, width - named.cell_len))
    speed = _row("speed")
    speed.append(f"{rate(rates.samples_per_s)} samples/s", style="bold green")
    speed.append(f"   {rate(rates.batches_per_s)} batches/s")
    for value, word in ((rates.read_bytes_per_s, "read"), (rates.out_bytes_per_s, "made")):
        speed.append("" if value is None else f"   {size(value)}/s {word}")
    return [named, speed, _wait(loader, width), *_queue(loader)]


def _wait(loader: LoaderView, width: int) -> Text:
    rates = loader.rates or UNKNOWN
    if loader.totals.wait_s is None:
        return _row("wait", "not measured, because the loop itself loads the data")
    wait = _row("wait")
    wait.append(amounts.bar(rates.wait_share, _bar(width)), style=_wait_style(rates.wait_share))
    wait.append(f" {percent(rates.wait_share):>4} of the loop's time  ")
    if loader.idle_s >= _IDLE_S:
        wait.append(f"no batch for {loader.idle_s:.0f} s", style="yellow")
    else:
        if rates.wait_share is not None and rates.batches_per_s:
            wait.append(f"{amounts.milliseconds(rates.wait_share / rates.batches_per_s * 1000)} a batch  ")
        wait.append(_spread(loader.waits))
        room = max(width - wait.cell_len, 1)
        wait.append(amounts.sparkline(loader.waits[-room:]), style=_wait_style(rates.wait_share))
    return wait


def _spread(waits: Sequence[float]) -> str:
    """Returns the mean and percentiles of the latest samples."""
    found = distribution(waits)
    if found is None or found["samples"] < _FEW_SAMPLES:
        return ""
    shares = ", ".join(f"{name} {percent(found[name])}" for name in ("mean", "p50", "p90", "p99"))
    return f"{shares} of {found['samples']:.0f} samples  "


def _loops(view: View, width: int) -> Section:
    """Returns one line per loop over a loader that does not publish counters."""
    found = []
    for loop in view.loops:
        if loop.missing:
            continue
        if loop.wait_share is None:
            found.append(_row("loop", f"pid {loop.pid}: its waits could not be sampled in this interval"))
            continue
        text = _row("loop", f"pid {loop.pid} waits about ")
        text.append(f"{percent(loop.wait_share)} of its time for workers", style=_wait_style(loop.wait_share))
        text.append(f"  {_spread(loop.waits)}")
        room = max(width - text.cell_len, 1)
        found.append(text.append(amounts.sparkline(loop.waits[-room:]), style=_wait_style(loop.wait_share)))
    return found


def _processes(view: View, width: int, height: int | None) -> Section:
    """Returns one line per process of the run, those with the most CPU time first."""
    rows = view.host.processes
    if len(rows) < 2:
        return []
    most = _MOST_ROWS if height is None else _FEW_ROWS
    head = f"{'process':<9} st {'CPUs':>5} {'read/s':>11} {'disk/s':>11} {'memory':>8} threads"
    found = [Text(head, style="dim")]
    for row in rows[:most]:
        text = Text(f"{row.pid:<9} {row.state:<2} {amounts.decimal(row.cpus_used):>5}")
        text.append(f" {size(row.read_bytes_per_s) + '/s':>11} {size(row.device_bytes_per_s) + '/s':>11}")
        text.append(f" {size(row.resident_bytes):>8} {row.threads:>7}  ")
        found.append(text.append(view.commands.get(row.pid, "")[: max(width - text.cell_len, 0)], style="dim"))
    left = len(view.host.pids) - min(len(rows), most)
    return [*found, Text(f"and {left} more", style="dim")] if left > 0 else found


def _queue(loader: LoaderView) -> Section:
    totals, rates = loader.totals, loader.rates or UNKNOWN
    words = []
    if totals.ready_batches is not None:
        words.append(f"{count(totals.ready_batches)} batch{'' if totals.ready_batches == 1 else 'es'} ready")
    if totals.held_bytes is not None:
        budget = f" of {size(totals.budget_bytes)}" if totals.budget_bytes else ""
        words.append(f"{size(totals.held_bytes)}{budget} held")
    if totals.held_bytes_peak is not None:
        words.append(f"{size(totals.held_bytes_peak)} at most")
    if totals.bad_samples:
        words.append(f"{count(totals.bad_samples)} bad samples")
    found = [_row("queue", ", ".join(words))]
    if totals.threads is not None and rates.busy_share is not None:
        busy = f"{percent(rates.busy_share)} busy, {percent(rates.blocked_share)} blocked (ahead of the loop)"
        found.append(_row("threads", f"{count(totals.threads)}: {busy}, {percent(rates.starved_share)} starved"))
    elif totals.threads:
        found.append(_row("workers", count(totals.threads)))
    return found


def _stages(loader: LoaderView, width: int) -> Section:
    if not loader.totals.stages:
        return []
    wide = min(max(width - _STAGE_COLUMNS, 4), 60)
    head = f"{'busy':<{wide + 5}}{'items/s':>9}{'bytes/s':>11}{'median':>11}{'99 %':>10}"
    found = [Text(f"{'stage':<10}{head}", style="dim")]
    for name in loader.totals.stages:
        rates = (loader.rates or UNKNOWN).stages.get(name, UNKNOWN_STAGE)
        text = Text(f"{name:<10.9}")
        text.append(amounts.bar(rates.busy_share, wide), style="cyan")
        text.append(f"{percent(rates.busy_share):>5}{rate(rates.items_per_s):>9}")
        text.append(f"{size(rates.bytes_per_s) + '/s':>11}")
        text.append(f"{amounts.milliseconds(rates.p50_ms):>11}")
        text.append(f"{amounts.milliseconds(rates.p99_ms):>10}")
        found.append(text)
    return found


def _host(view: View, width: int) -> Section:
    host, memory = view.host, view.host.memory
    cpu = _row("cpu")
    cpu.append(
        amounts.bar(None if host.cpus_used is None else host.cpus_used / host.cpus_usable, _bar(width)), style="cyan"
    )
    cpu.append(f" {amounts.decimal(host.cpus_used)} of {host.cpus_usable:g} CPUs, {_many(len(host.pids), 'process')}")
    cpu.append(
        f", {host.threads} {'thread' if host.threads == 1 else 'threads'}; machine {amounts.decimal(host.cpus_busy)}"
    )
    used = _row("memory", f"{size(memory.pss_bytes)} PSS" if memory.pss_bytes is not None else "")
    used.append("" if memory.pss_bytes is not None else f"{size(host.resident_bytes)} resident")
    if memory.limit_bytes is not None:
        used.append(f", limit {size(memory.used_bytes)} of {size(memory.limit_bytes)}")
    used.append(f", {size(host.available_bytes)} free, swapped {size(memory.swapped_bytes)}")
    used.append(f", /dev/shm {size(memory.shared_bytes)}")
    disk = _row("disk", f"run {size(host.read_bytes_per_s)}/s read")
    disk.append(f"; all {size(host.disk_bytes_per_s)}/s, {rate(host.disk_reads_per_s)} reads/s")
    disk.append("" if host.disk_read_ms is None else f" of {amounts.milliseconds(host.disk_read_ms)}")
    disk.append("".join(f"; {d.name} {percent(d.busy_share)} busy" for d in host.disks[:1]))
    waits = _row("waits", f"for CPU {percent(host.cpu_pressure)} (run {percent(host.delay_share)})")
    waits.append(f", disk {percent(host.io_pressure)}, memory {percent(host.memory_pressure)} of the time")
    waits.append(f"; quota {percent(host.throttled_share)}")
    return [cpu, used, disk, waits]


def _gpus(view: View, width: int) -> Section:
    if not view.gpus:
        return _wrapped("gpu", view.gpus_unavailable or "none", width, "dim")
    found = []
    # the run's GPUs first
    for gpu in sorted(view.gpus, key=lambda gpu: not set(gpu.pids) & set(view.host.pids)):
        text = _row(f"gpu {gpu.index}")
        text.append(amounts.bar(gpu.utilisation, _bar(width) - 14), style="green")
        text.append(f" {percent(gpu.utilisation):>4}, {size(gpu.memory_used_bytes)} of {size(gpu.memory_bytes)}")
        text.append(f", in {size(gpu.received_bytes_per_s)}/s, out {size(gpu.sent_bytes_per_s)}/s")
        text.append("" if gpu.power_w is None else f", {gpu.power_w:.0f} W")
        text.append("" if gpu.temperature_c is None else f" {gpu.temperature_c} C")
        found.append(text)
    return found


def _cost(view: View, width: int) -> Section:
    if view.spent is None:
        return []
    idle = "idle for data" if view.loaders else "idle, by GPU-Util,"
    share = f"{idle} {percent(view.spent.idle_share)} of {amounts.clock(view.spent.seconds)}"
    return _wrapped("cost", f"{share}: {spending(view.spent, view.price)}", width, "")


def _alarms(view: View, width: int) -> Section:
    found = []
    for alarm in view.alarms:
        found += _wrapped("!", alarm.text, width, "bold red" if alarm.severity == "critical" else "yellow")
    return found


def _notes(view: View, width: int) -> Section:
    return [line for note in view.notes for line in _wrapped("note", note, width, "dim")]


def _wrapped(label: str, text: str, width: int, style: str) -> Section:
    parts = textwrap.wrap(text, max(width - _LABEL - 1, 20))
    return [_row("" if i else label, part, style) for i, part in enumerate(parts)]


def _others(view: View) -> Section:
    if not view.others:
        return []
    named = ", ".join(f"{other.pid} {other.command[:30]}" for other in view.others[:_MOST_OTHERS])
    more = f" and {len(view.others) - _MOST_OTHERS} more" if len(view.others) > _MOST_OTHERS else ""
    return [_row("others", named + more, style="dim")]


def _row(label: str, text: str = "", style: str = "") -> Text:
    return Text().append(f"{label:<{_LABEL}} ", style=style or "bold").append(text, style=style or None)


def _bar(width: int) -> int:
    return min(max(width // 4, 16), 60)


def _wait_style(share: float | None) -> str:
    if share is None:
        return "default"
    return "red" if share >= 0.2 else "yellow" if share >= 0.1 else "green"


def _many(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}es"
