# SPDX-License-Identifier: Apache-2.0
"""``feedline bench --machine``: measures the machine itself and prints the result."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from rich.markup import escape

from feedline.bench.machine.measuring import Probes, joined, measure
from feedline.cli.console import OUT, bytes_text, print_json, steps, table
from feedline.record import envelope, write


def run(as_json: bool, record: Path | None) -> int:
    """Measures without a source, prints the result, and writes the record if one is requested."""
    began = time.time()
    found = probes(None)
    if as_json or record is not None:
        facts = envelope("bench", ["feedline", *sys.argv[1:]], "this machine", began=began)
        whole = joined({**facts, "wall_s": time.time() - began, "figures": found.figures}, found)
    print_json(whole) if as_json else show(found)
    if record is not None:
        write(whole, record)
    return 0


def probes(source: str | None) -> Probes:
    """Runs the measurement, with a progress line on a terminal."""
    with steps(None, "measuring the machine"):
        return measure(source)


def show(found: Probes) -> None:
    """Prints a table, and lists the measurements that failed."""
    table(("this machine", "measured", "95 % interval of the mean"), [_row(one) for one in found.figures])
    for note in found.notes:
        OUT.print(escape(note))


def _row(one: dict[str, object]) -> tuple[str, str, str]:
    value, low, high = (_text(one[name], str(one["unit"])) for name in ("value", "low", "high"))
    return str(one["label"]), value, f"{low} to {high}" if low and high else ""


def _text(value: object, unit: str) -> str:
    if not isinstance(value, float):
        return ""
    if unit == "B/s":
        return f"{bytes_text(value)}/s"
    return f"{value:,.3g} ms" if unit == "ms" else f"{value:,.0f}/s"
