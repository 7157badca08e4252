# SPDX-License-Identifier: Apache-2.0
"""Renders the page, with one section for each part of the record, or a sentence if the part is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from .. import cost
from ..findings import formats
from ..findings.markup import Element, add, make, text_of
from . import charts
from .numbers import fact, number, size, with_unit

# Whatever a record contains, the page must not load or run anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_WAITS = {
    "step": "own work",
    "production": "being made",
    "straggler": "slow sample",
    "handover": "hand-over",
    "startup": "workers starting",
    "border": "epoch's border",
}
_SERIES = {"wait_ms": "wait for a batch", "step_ms": "the loop's own work"}


def page(record: Mapping[str, Any], price: cost.Price | None = None) -> str:
    """Renders a record read by `feedline.record.read` as one HTML document without scripts and links.

    `price` is the price of a GPU-hour, by default the price in the record.
    """
    style = files("feedline.report").joinpath("style.css").read_text(encoding="utf-8")
    title = f"feedline {record['verb']}: {record['subject'] or 'a run'}"
    head = make(
        "head",
        make("meta", charset="utf-8"),
        make("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        make("meta", name="viewport", content="width=device-width, initial-scale=1"),
        make("meta", name="color-scheme", content="light dark"),
        make("title", title),
        make("style", style),
    )
    sections = [
        _verdicts(record),
        _tuning(record),
        _chain(record),
        _cost(record, price or cost.NO_PRICE),
        _timeline(record),
        _stages(record),
        *_histograms(record),
        _waits(record),
        _ladder(record),
        _notes(record),
        *_environment(record),
    ]
    body = make("body", _heading(record, title), make("main", *sections))
    return "<!DOCTYPE html>\n" + text_of(make("html", head, body, lang="en")) + "\n"


def _heading(record: Mapping[str, Any], title: str) -> Element:
    machine = record["machine"] or {}
    parts = [
        record["began"],
        f"{record['wall_s']:.1f} s" if "wall_s" in record else None,
        f"on {machine['host']}" if machine.get("host") else None,
        f"{machine['usable_cpus']:.3g} usable CPUs ({machine.get('cpu') or 'unknown model'})"
        if machine.get("usable_cpus")
        else None,
    ]
    heading = make("header", make("h1", title), make("p", ", ".join(p for p in parts if p), class_="quiet"))
    if record["command"]:
        add(heading, make("p", make("code", " ".join(record["command"])), class_="quiet"))
    figures = make("div", class_="figures")
    for one in record["figures"]:
        spread = "" if one["low"] is None or one["high"] is None else f"{number(one['low'])} to {number(one['high'])}"
        label = f"{one['label']}; 95 %: {spread}" if spread else one["label"]
        add(figures, make("div", make("b", with_unit(one["value"], one["unit"])), make("span", label)))
    add(heading, figures)
    return heading


def _section(title: str, *content: Element | str | None, wide: bool = False) -> Element:
    return make("section", make("h2", title), *content, class_="wide" if wide else None)


def _verdicts(record: Mapping[str, Any]) -> Element:
    section = _section("Verdict", wide=True)
    if answer := record.get("answer"):
        add(section, make("p", make("b", f"Do this first: {answer['text']}.")))
    for verdict in record["verdicts"]:
        found = formats.pieces(formats.of_cause(verdict))
        add(section, make("h3", found.heading))
        add(section, make("ul", *(make("li", sentence) for sentence in found.sentences)))
        add(section, make("p", found.fix, class_="fix"))
    if not record["verdicts"]:
        judged = record["verb"] == "diagnose"
        add(
            section,
            make(
                "p",
                "No cause was named."
                if judged
                else f"feedline {record['verb']} measures; `feedline diagnose -- python train.py` finds causes.",
            ),
        )
    if isinstance(record.get("more_workers"), str):
        add(section, make("p", record["more_workers"]))
    if record["abstained"]:
        items = [make("li", f"{one['cause']}: {one['missing']}") for one in record["abstained"]]
        add(section, make("details", make("summary", f"Causes not judged: {len(items)}"), make("ul", *items)))
    return section


def _chain(record: Mapping[str, Any]) -> Element | None:
    if not record["chain"]:
        return None
    notes = [make("li", f"{one['name']}: {one['note']}") for one in record["chain"]]
    return _section("Time per batch, from storage to GPU", charts.chain(record["chain"]), make("ul", *notes))


def _cost(record: Mapping[str, Any], price: cost.Price) -> Element | None:
    if price.gpu_hour is None:
        price = cost.Price((record.get("cost") or {}).get("gpu_hour_price"), price.job_hours)
    words = cost.lines(cost.of_record(record, price), record["verdicts"], price)
    if not words:
        return None
    return _section("The cost of waiting for data", make("ul", *(make("li", one) for one in words)))


def _timeline(record: Mapping[str, Any]) -> Element | None:
    series = [one for one in (record["timeline"] or {"series": []})["series"] if one["points"]]
    if not series:
        return _section("Timeline", make("p", "This record contains no times of single batches.", class_="quiet"))
    keys = make("p", class_="quiet")
    for i, one in enumerate(series):
        add(keys, make("span", class_=f"key c{i % 6}"))
        add(keys, _SERIES.get(one["name"], one["name"]))
    if any(point[2] > point[1] for one in series for point in one["points"]):
        add(keys, "; pale: the longest of each stretch")
    if charts.is_cut(series):
        add(keys, "; the highest are clipped")
    return _section("Timeline", charts.timeline(series), keys)


def _stages(record: Mapping[str, Any]) -> Element:
    rows = [
        (one["name"], one["ms_per_batch"], f"{number(one['ms_per_batch'])} ms")
        for one in record["stages"]
        if one["ms_per_batch"]
    ]
    if not rows:
        return _section("Stages", make("p", "The times of stages were not recorded in this run.", class_="quiet"))
    section = _section(
        "Time per batch in each stage, summed over all threads or workers", charts.bars(rows, "time per batch by stage")
    )
    detailed = [one for one in record["stages"] if one.get("bytes_per_batch") is not None]
    if detailed:
        add(
            section,
            _table(
                ("stage", "out per batch", "blocked", "starved"),
                [
                    (
                        one["name"],
                        size(one["bytes_per_batch"]),
                        _seconds(one.get("blocked_s")),
                        _seconds(one.get("starved_s")),
                    )
                    for one in detailed
                ],
            ),
        )
    return section


def _seconds(value: float | None) -> str:
    return "not seen" if value is None else f"{value:.2f} s"


def _histograms(record: Mapping[str, Any]) -> list[Element]:
    made = []
    for i, (name, held) in enumerate(record["histograms"].items()):
        title = _SERIES.get(name, name)
        chart = charts.histogram(held["edges"], held["counts"], name.rpartition("_")[2], title, i % 6)
        made.append(_section(f"Distribution: {title}", chart))
    return made


def _waits(record: Mapping[str, Any]) -> Element | None:
    shares = {name: value for name, value in (record["waits"] or {}).items() if value > 0}
    if not shares:
        return None
    rows = [(_WAITS.get(name, name), value, f"{value:.1%}") for name, value in shares.items()]
    return _section("The loop's time", charts.bars(rows, "shares of the loop's time"))


def _ladder(record: Mapping[str, Any]) -> Element | None:
    held = record["ladder"]
    if held is None:
        return None
    if not held["rungs"]:
        return _section("Search over workers", make("p", f"Not measured: {held['refused']}", class_="quiet"))
    keys = (
        "Dots are measurements with 95 % intervals, pale if there is no significant gain. Rings are predictions "
        "of the model."
    )
    return _section("Search over workers", charts.ladder(held["rungs"]), make("p", keys, class_="quiet"))


def _tuning(record: Mapping[str, Any]) -> Element | None:
    held = record.get("tuning")
    if held is None:
        return None
    rows, best = [row or [""] for row in held["rows"]], held["best"]
    words = "No row is significantly better."
    if best is not None and best < len(rows):
        rows[best] = [f"→ {rows[best][0]}", *rows[best][1:]]
        words = "Use the settings in the row with the arrow."
    table = _table(held["columns"], rows)
    if best is not None and best < len(rows):
        table[best - len(rows)].set("class", "best")
    conclusion, key = make("p", held["conclusion"], class_="fix"), make("p", words, class_="quiet")
    return _section("Settings tried", conclusion, table, key, wide=True)


def _notes(record: Mapping[str, Any]) -> Element | None:
    if not record["notes"]:
        return None
    return _section("Missing measurements", make("ul", *(make("li", note) for note in record["notes"])))


def _environment(record: Mapping[str, Any]) -> list[Element]:
    made = []
    for name, title in (
        ("configuration", "Loader"),
        ("machine", "Machine"),
        ("storage", "Storage of the dataset"),
        ("software", "Software"),
        ("packages", "Packages"),
    ):
        facts = record.get(name)
        if facts:
            rows = [(key.replace("_", " ").removesuffix(" bytes"), fact(key, value)) for key, value in facts.items()]
            table = _table((), rows)
            if name == "packages":
                table = make("details", make("summary", f"{len(rows)} packages"), table)
            made.append(_section(title, table))
        elif name not in ("configuration", "packages"):
            made.append(_section(title, make("p", "Not recorded.", class_="quiet")))
    return made


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Element:
    table = make("table", class_=None if columns else "facts")
    if columns:
        add(table, make("tr", *(make("th", column, scope="col") for column in columns)))
    for first, *others in rows:
        add(table, make("tr", make("th", first, scope="row"), *(make("td", cell) for cell in others)))
    return table
