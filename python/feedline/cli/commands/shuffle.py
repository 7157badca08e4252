# SPDX-License-Identifier: Apache-2.0
"""``feedline bench --shuffle-quality``: prints a table of shuffle statistics."""

from __future__ import annotations

from typing import Any

from feedline.bench import shuffle_quality
from feedline.bench.orders import FEW, MANY_EPOCHS
from feedline.cli.console import OUT, counted, table

_LEGEND = f"""\
position and sample, epoch and next epoch: rank correlations; 1 means the same order
adjacent kept: share of samples that follow their neighbour in the dataset
step to next, distance moved: mean distances and quantiles, divided by the number of samples
sample at position: chi-square over degrees of freedom, {FEW} samples, {MANY_EPOCHS:,} epochs, windows in proportion
p: probability that a perfect shuffle deviates as much; red below {shuffle_quality.FAILS_BELOW:g}"""


def show(result: dict[str, Any]) -> None:
    """Prints a table with one row per statistic: the value of a perfect shuffle and every loader's p-value."""
    orders = result["orders"]
    found = f"{counted(result['samples'], 'sample')} in {counted(result['shards'], 'shard')}"
    OUT.print(f"[bold]{found}[/], seed {result['seed']}")
    first = next(iter(orders.values()))
    rows = []
    for key, statistic in first["statistics"].items():
        cells = [_cell(order["statistics"][key]) for order in orders.values()]
        rows.append((statistic["name"], _number(statistic["expected"]), *cells))
    for index, quantile in enumerate(first["displacement_quantiles"]):
        values = [_number(order["displacement_quantiles"][index]["value"]) for order in orders.values()]
        rows.append((f"{quantile['share']:.0%} moved less", _number(quantile["expected"]), *values))
    table(("", "perfect", *orders), rows)
    OUT.print(_LEGEND)


def _cell(statistic: dict[str, Any]) -> str:
    p_value = statistic["p_value"]
    text = f"{_number(statistic['value'])}\np " + (f"{p_value:.2g}" if p_value > 1e-9 else "<1e-9")
    return text if statistic["passed"] else f"[red]{text}[/]"


def _number(value: float) -> str:
    if abs(value) >= 1:
        return f"{value:.5g}"
    return f"{value:.4f}" if abs(value) >= 0.001 or value == 0 else f"{value:.0e}"
