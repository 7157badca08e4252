# SPDX-License-Identifier: Apache-2.0
"""``feedline report``: a run record as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape

from feedline.cli.console import OUT, print_json
from feedline.cli.outputs import OUTPUT_FILE, problem_of_file
from feedline.record import read
from feedline.report import page


@click.command()
@click.argument("run", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=OUTPUT_FILE, help="The page. Default: RUN.html beside RUN.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the page's path and its size.")
def report(run: Path, output: Path | None, as_json: bool) -> int:
    """Draw the run record in RUN, as `feedline bench --output` and `feedline diagnose --output` write it.

    The page needs no network and runs no script.
    """
    target = output or run.with_suffix(".html")
    if target.exists() and target.samefile(run):
        raise click.UsageError("--output: this is the record itself")
    if output is None and (problem := problem_of_file(target)):
        raise click.UsageError(f"{problem}; or name the page with --output")
    text = page(read(run)).encode("utf-8", "replace")
    target.write_bytes(text)
    if as_json:
        print_json({"page": str(target), "bytes": len(text)})
    else:
        OUT.print(escape(str(target)))
    return 0
