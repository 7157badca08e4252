# SPDX-License-Identifier: Apache-2.0
"""Draws charts as inline SVG. Colours are CSS classes, which style.css defines for light and dark screens and for
paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..findings.markup import Element, add, make
from ..record.chain import slowest, title_of
from .numbers import number, ticks, with_unit

WIDTH, HEIGHT = 640.0, 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 12.0, 12.0, 40.0
_COLOURS = 6  # classes c0 to c5


class Plot:
    """A plot area with axes, which maps `x` and `y` linearly."""

    def __init__(self, label: str, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x = x if x[1] > x[0] else (x[0], x[0] + 1)
        self.y = y if y[1] > y[0] else (y[0], y[0] + 1)
        self.element = make(
            "svg", make("title", label), viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}", role="img", aria_label=label
        )

    def at(self, x: float, y: float) -> tuple[float, float]:
        width, height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
        return (
            _LEFT + width * (x - self.x[0]) / (self.x[1] - self.x[0]),
            _TOP + height * (1 - (y - self.y[0]) / (self.y[1] - self.y[0])),
        )

    def y_axis(self, label: str) -> None:
        for value in ticks(*self.y, most=4):
            _, y = self.at(self.x[0], value)
            add(self.element, make("line", class_="grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y))
            add(self.element, make("text", f"{value:,.10g}", class_="end", x=_LEFT - 6, y=y + 4))
        add(
            self.element,
            make("text", label, class_="mid", transform=f"translate(12 {(HEIGHT - _BOTTOM) / 2}) rotate(-90)"),
        )

    def x_axis(self, label: str, places: Sequence[tuple[float, str]]) -> None:
        _, bottom = self.at(self.x[0], self.y[0])
        add(self.element, make("line", class_="axis", x1=_LEFT, x2=WIDTH - _RIGHT, y1=bottom, y2=bottom))
        for value, text in places:
            x, _ = self.at(value, self.y[0])
            add(self.element, make("text", text, class_="mid", x=x, y=bottom + 16))
        add(self.element, make("text", label, class_="mid", x=(WIDTH + _LEFT) / 2, y=HEIGHT - 6))


def timeline(series: Sequence[Mapping[str, Any]]) -> Element:
    """Draws means as lines, with the maximum of each period as a paler line."""
    known = [(i, one["points"]) for i, one in enumerate(series) if one["points"]]
    every = [point for _, points in known for point in points]
    top = _top(series)
    plot = Plot("milliseconds over time", (0, max((t for t, _, _ in every), default=1.0)), (0, 1.05 * top))
    plot.y_axis("ms per batch")
    plot.x_axis("seconds since the start", [(t, f"{t:,.10g}") for t in ticks(*plot.x)])
    for column, style in ((2, "pale"), (1, "line")):
        for i, points in known:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (plot.at(p[0], min(p[column], plot.y[1])) for p in points))
            add(plot.element, make("polyline", class_=f"{style} s{i % _COLOURS}", points=path))
    return plot.element


def is_cut(series: Sequence[Mapping[str, Any]]) -> bool:
    """Whether some values exceed the axis of :func:`timeline`."""
    return any(point[2] > 1.05 * _top(series) for one in series for point in one["points"])


def _top(series: Sequence[Mapping[str, Any]]) -> float:
    return max((_usual_largest(one["points"]) for one in series if one["points"]), default=0.0)


def _usual_largest(points: Sequence[Sequence[float]]) -> float:
    """Returns the upper end of the axis: a few outliers, such as the first batch, must not flatten the other values."""
    largest = sorted(point[2] for point in points)
    usual = largest[int(0.98 * (len(largest) - 1))]
    return largest[-1] if largest[-1] <= 3 * usual else 1.5 * usual


def histogram(edges: Sequence[float], counts: Sequence[int], unit: str, label: str, colour: int = 0) -> Element:
    """Draws a histogram with bars of equal width. The buckets have equal ratios, so the axis is logarithmic."""
    plot = Plot(label, (0, len(counts)), (0, 1.05 * max(counts, default=1)))
    plot.y_axis("batches")
    every = max(1, math.ceil(len(counts) / 8))
    plot.x_axis(f"{label}, {unit}", [(i, number(edge)) for i, edge in enumerate(edges) if i % every == 0])
    for i, count in enumerate(counts):
        (left, top), (right, bottom) = plot.at(i, count), plot.at(i + 1, 0)
        tip = make("title", f"{number(edges[i])} to {number(edges[i + 1])} {unit}: {count}")
        bar = make(
            "rect", tip, class_=f"c{colour}", x=left + 1, y=top, width=max(right - left - 2, 1), height=bottom - top
        )
        add(plot.element, bar)
    return plot.element


def ladder(rungs: Sequence[Mapping[str, Any]]) -> Element:
    """Draws batches per second by number of workers, with intervals; rings mark the model's predictions."""
    top = max(max(rung["high"] or rung["batches_per_s"], rung["predicted"] or 0) for rung in rungs)
    plot = Plot("batches per second by number of workers", (-0.5, len(rungs) - 0.5), (0, 1.1 * top))
    plot.y_axis("batches/s")
    plot.x_axis("workers, loader only", [(i, str(rung["workers"])) for i, rung in enumerate(rungs)])
    path = " ".join("{:.1f},{:.1f}".format(*plot.at(i, rung["batches_per_s"])) for i, rung in enumerate(rungs))
    add(plot.element, make("polyline", class_="line s0", points=path))
    for i, rung in enumerate(rungs):
        x, y = plot.at(i, rung["batches_per_s"])
        ends = (rung["low"], rung["high"]) if rung["high"] is not None else (rung["batches_per_s"],) * 2
        low, high = plot.at(i, max(ends[0], 0))[1], plot.at(i, ends[1])[1]
        outcome = "kept" if rung["kept"] else "undecided" if rung.get("undecided") else "gains nothing"
        tip = make("title", f"{rung['workers']} workers: {number(rung['batches_per_s'])}/s, {outcome}")
        add(plot.element, make("line", class_="line s0", x1=x, x2=x, y1=low, y2=high))
        add(plot.element, make("circle", tip, class_="c0" if rung["kept"] else "c0 faded", cx=x, cy=y, r=5))
        if rung["predicted"] is not None:
            y = plot.at(i, rung["predicted"])[1]
            add(plot.element, make("circle", class_="ring", cx=x, cy=y, r=8))
    return plot.element


def bars(rows: Sequence[tuple[str, float, str]], label: str) -> Element:
    """Draws one horizontal bar for each (name, value, text), coloured by position."""
    height = 26 * len(rows) + 8
    chart = make("svg", make("title", label), viewBox=f"0 0 {WIDTH:.0f} {height}", role="img", aria_label=label)
    largest = max((value for _, value, _ in rows), default=0.0) or 1.0
    name_width, text_width = 120.0, 110.0
    for i, (name, value, text) in enumerate(rows):
        y, width = 4 + 26 * i, (WIDTH - name_width - text_width) * max(value, 0.0) / largest
        add(chart, make("text", name, class_="end", x=name_width - 8, y=y + 16))
        add(
            chart,
            make("rect", class_=f"c{i % _COLOURS}", x=name_width, y=y + 3, width=max(width, 1.0), height=18, rx=2),
        )
        add(chart, make("text", text, x=name_width + width + 8, y=y + 16))
    return chart


def chain(links: Sequence[Mapping[str, Any]]) -> Element:
    """Draws the stages from storage to GPU with the time of a batch in each stage, and highlights the bottleneck."""
    hot = slowest(links)
    links = [one for one in links if title_of(one)]
    height = 112 if any(one.get("at_once", 1) > 1 for one in links) else 92
    chart = make("svg", make("title", "storage to GPU"), viewBox=f"0 0 {WIDTH:.0f} {height}", role="img")
    gap = 24.0
    width = (WIDTH - 2 - gap * (len(links) - 1)) / max(len(links), 1)
    for i, one in enumerate(links):
        x, ms = 1 + i * (width + gap), one["ms_per_batch"]
        kind = "box" if ms is None else "box hot" if one["name"] == hot else "box known"
        add(
            chart,
            make("rect", make("title", one["note"]), class_=kind, x=x, y=6, width=width, height=height - 12, rx=6),
        )
        middle = x + width / 2
        add(chart, make("text", title_of(one), class_="mid strong", x=middle, y=30))
        for line, text in enumerate(_of_link(one)):
            add(chart, make("text", text, class_="mid", x=middle, y=52 + 20 * line))
        if i:
            start = x - gap + 4
            add(chart, make("path", class_="arrow", d=f"M{start:.0f} 46 h{gap - 10:.0f} m-5 -5 l5 5 l-5 5"))
    return chart


def _of_link(one: Mapping[str, Any]) -> list[str]:
    ms, count = one["ms_per_batch"], one.get("at_once", 1)
    words = ["not measured" if ms is None else f"{number(ms)} ms"]
    if ms is not None and count > 1:
        words.append(f"{number(ms / count)} ms by {count:.3g} at once")
    if one["bytes_per_s"] is not None:
        words.append(with_unit(one["bytes_per_s"], "B") + "/s")
    return words
