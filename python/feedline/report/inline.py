# SPDX-License-Identifier: Apache-2.0
"""Renders a run record as a block of HTML for notebooks, with the complete page collapsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..findings import formats, inline
from ..findings.markup import Element, make
from . import charts
from .numbers import number, with_unit
from .page import page

_HEIGHT = 720  # px, height of the page, which scrolls in its frame
_STYLE = """
.feedline-block svg { display: block; width: 100%; max-width: 640px; height: auto; font: 12px system-ui, sans-serif; }
.feedline-block svg text { fill: currentColor; }
.feedline-block .mid { text-anchor: middle; }
.feedline-block .strong { font-weight: 600; font-size: 14px; }
.feedline-block .box { fill: none; stroke: #8a94a0; stroke-dasharray: 4 3; }
.feedline-block .known { stroke: #2f6fde; stroke-dasharray: none; }
.feedline-block .hot { stroke: #c9302c; stroke-width: 2; stroke-dasharray: none; }
.feedline-block .arrow { fill: none; stroke: #8a94a0; stroke-width: 1.5; }
.feedline-block .feedline-figures span { display: inline-block; margin: 0 28px 6px 0; vertical-align: top; }
.feedline-block .feedline-figures b { display: block; font-size: 20px; }
.feedline-block iframe { width: 100%; border: 1px solid #8a94a0; border-radius: 6px; background: #fff; }
"""


def block(record: Mapping[str, Any]) -> str:
    """Renders a validated record: metrics, findings, the chain from storage to GPU, and the page of ``feedline
    report``.

    The page is in a frame without permissions, so it cannot run scripts or load resources.
    """
    return inline.block(
        _sentence(record["answer"]["text"] + "." if record.get("answer") else None),
        _figures(record["figures"]),
        *(inline.element(formats.of_cause(verdict)) for verdict in record["verdicts"]),
        None if record["verdicts"] else make("p", _nothing(record)),
        _sentence(record.get("more_workers")),
        charts.chain(record["chain"]) if any(one["ms_per_batch"] for one in record["chain"]) else None,
        _folded("Missing measurements", [make("ul", *(make("li", note) for note in record["notes"]))])
        if record["notes"]
        else None,
        _folded("The whole report", [make("iframe", srcdoc=page(record), sandbox="", height=_HEIGHT)]),
        style=_STYLE,
    )


def _figures(figures: Sequence[Mapping[str, Any]]) -> Element:
    made = []
    for one in figures:
        spread = "" if one["low"] is None or one["high"] is None else f"{number(one['low'])} to {number(one['high'])}"
        label = f"{one['label']}; 95 %: {spread}" if spread else one["label"]
        made.append(make("span", make("b", with_unit(one["value"], one["unit"])), label))
    return make("div", *made, class_="feedline-figures")


def _nothing(record: Mapping[str, Any]) -> str:
    waits = record["waits"]
    if not waits:
        return "No loop over a DataLoader or a Feedline loader was found."
    return f"No single cause accounts for 5 % of the time; all waits together: {1 - waits['step']:.0%}."


def _sentence(text: object) -> Element | None:
    return make("p", text) if isinstance(text, str) else None


def _folded(title: str, content: Sequence[Element]) -> Element:
    return make("details", make("summary", title, class_="feedline-quiet"), *content)
