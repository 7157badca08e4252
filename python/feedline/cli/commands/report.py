# SPDX-License-Identifier: Apache-2.0
"""``feedline report``: renders a run record as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape

from feedline import cost
from feedline.cli import parameters
from feedline.cli.console import OUT, print_json
from feedline.cli.outputs import problem_of_file
from feedline.record import read
from feedline.report import page as page_of


@click.command(short_help="Render a run record as one HTML page.")
@click.argument("run", type=parameters.INPUT_FILE)
@parameters.option(
    "-o",
    "--page",
    aliases=("--output",),
    type=parameters.OUTPUT_FILE,
    show_default="RUN.html next to RUN",
    help="Output file.",
)
@parameters.gpu_price
@parameters.as_json("Print one JSON object with the path and size of the page.")
def report(run: Path, page: Path | None, gpu_price: float | None, job_hours: float, as_json: bool) -> int:
    """Render the run record RUN, written by --record of bench, diagnose or tune.

    The page needs no network and runs no script.
    """
    target = page or run.with_suffix(".html")
    if target.exists() and target.samefile(run):
        raise click.UsageError("--page: this path is the record itself; use a different path")
    if page is None and (problem := problem_of_file(target)):
        raise click.UsageError(f"{problem}; or pass a different path for the page with --page")
    text = page_of(read(run), cost.price_of(gpu_price, job_hours)).encode("utf-8", "replace")
    target.write_bytes(text)
    if as_json:
        print_json({"page": str(target), "bytes": len(text)})
    else:
        OUT.print(escape(str(target)))
    return 0
