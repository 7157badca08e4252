# SPDX-License-Identifier: Apache-2.0
"""The demo's results as one HTML file that works offline."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

_STOCK = "#8a8f98"
_OURS = "#1f6feb"
_FIGURES = (
    ("images_per_s", "images per second", 1.0, "more is better", ",.0f"),
    ("cpu_s_per_1000_images", "CPU-seconds per 1,000 images", 1.0, "less is better", ".2f"),
    ("first_batch_s", "first batch, milliseconds", 1000.0, "less is better", ".0f"),
    ("peak_bytes_above_bare", "memory, MB", 1e-6, "less is better", ".0f"),
)
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1f2328; }
h1 { margin-bottom: 0; } .lead { font-size: 1.25rem; margin-top: .25rem; }
table { border-collapse: collapse; margin: 1rem 0; } th, td { padding: .35rem .9rem; text-align: right; }
th { border-bottom: 2px solid #d0d7de; font-weight: 600; } td { border-bottom: 1px solid #eaeef2; }
th:first-child, td:first-child { text-align: left; } .small { color: #57606a; font-size: .875rem; }
"""

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Feedline demo</title><style>{style}</style>
<h1>Feedline demo</h1>
<p class="lead">{images} photos on this machine: <b>{speed_up} times</b> the images
per second of the stock DataLoader.</p>
{bars}
{loaders}
<p class="small">Every loader decodes the same JPEG files, draws random_resized_crop(224) and a flip, and gives
normalised float32 batches of {batch_size}, with {threads} threads or worker processes. Each ran in a fresh process; an
epoch warmed up before {epochs} timed ones. Stock: {stock}. Memory is the peak of what
the process tree holds, mapped or not, above the bare interpreter with its imports.</p>
<h2>Training through Feedline</h2>
<p>A small convolutional net tells {classes} groups of pictures apart, crops of {side} pixels, on the CPU.</p>
{losses}
{training}
<h2>Machine</h2>
<p class="small">{cpu}, {cpus} CPUs, {memory} GiB, Linux {kernel}, Python {python}, {versions}.
Commit {commit}, {date} UTC.</p></html>
"""


def _bars(rows: list[dict[str, Any]]) -> str:
    figure = make_subplots(
        1, len(_FIGURES), subplot_titles=[f"{title}<br><sub>{note}</sub>" for _, title, _, note, _ in _FIGURES]
    )
    for column, (name, _, factor, _, form) in enumerate(_FIGURES, 1):
        values = [row[name] * factor for row in rows]
        figure.add_bar(
            x=[row["label"].replace(", ", "<br>") for row in rows],
            y=values,
            text=[format(value, form) for value in values],
            textposition="outside",
            cliponaxis=False,
            marker_color=[_STOCK if row["kind"] == "stock" else _OURS for row in rows],
            row=1,
            col=column,
        )
        figure.update_yaxes(range=[0, max(values) * 1.18], showticklabels=False, row=1, col=column)
    figure.update_annotations(font_size=13)
    figure.update_layout(
        template="plotly_white", showlegend=False, height=400, margin={"l": 10, "r": 10, "t": 70, "b": 60}
    )
    return figure.to_html(full_html=False, include_plotlyjs=True)


def _losses(history: list[dict[str, Any]]) -> str:
    losses = [loss for epoch in history for loss in epoch["losses"]]
    window = 5
    smooth = [
        sum(losses[max(0, i - window + 1) : i + 1]) / len(losses[max(0, i - window + 1) : i + 1])
        for i in range(len(losses))
    ]
    figure = go.Figure()
    figure.add_scatter(y=losses, mode="lines", line={"color": "#c9d1d9"}, name="each batch")
    figure.add_scatter(y=smooth, mode="lines", line={"color": _OURS}, name=f"mean of {window}")
    for epoch in range(1, len(history)):
        figure.add_vline(x=epoch * len(history[0]["losses"]), line_dash="dot", annotation_text=f"epoch {epoch + 1}")
    figure.update_layout(
        template="plotly_white",
        height=320,
        xaxis_title="batch",
        yaxis_title="cross entropy",
        margin={"l": 50, "r": 10, "t": 20, "b": 40},
    )
    return figure.to_html(full_html=False, include_plotlyjs=False)


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def write_page(record: dict[str, Any], path: Path) -> None:
    """Writes the page; `record` is what `demo.py` writes as JSON."""
    rows, history, machine = record["loaders"], record["training"], record["machine"]
    cells = [
        (row["label"], *(format(row[name] * factor, form) for name, _, factor, _, form in _FIGURES)) for row in rows
    ]
    epochs = [
        (f"{entry['epoch']}", f"{entry['loss']:.3f}", f"{entry['seconds']:.1f} s", f"{entry['waited_s']:.2f} s")
        for entry in history
    ]
    path.write_text(
        _PAGE.format(
            style=_STYLE,
            images=f"{record['images']:,}",
            speed_up=f"{record['speed_up']:.1f}",
            bars=_bars(rows),
            loaders=_table(("loader", *(title for _, title, _, _, _ in _FIGURES)), cells),
            batch_size=record["batch_size"],
            threads=record["threads"],
            epochs=record["epochs"],
            stock=html.escape(record["stock_transforms"]),
            classes=record["classes"],
            side=record["training_side"],
            losses=_losses(history),
            training=_table(("epoch", "mean loss", "time", "of it waiting for data"), epochs),
            cpu=html.escape(machine["cpu"]),
            cpus=machine["cpus"],
            memory=machine["memory_gib"],
            kernel=html.escape(machine["kernel"]),
            python=machine["python"],
            versions=html.escape(", ".join(f"{name} {version}" for name, version in machine["versions"].items())),
            commit=html.escape(record["commit"]),
            date=record["date"],
        )
    )
