# SPDX-License-Identifier: Apache-2.0
"""``feedline merge-index``: ranges of shards, packed by many workers, become one dataset."""

from __future__ import annotations

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, counted, print_json


@click.command("merge-index", short_help="Put ranges of packed shards together.")
@click.argument("place", type=parameters.OUTPUT_PLACE)
@parameters.as_json()
def merge_index(place: str, as_json: bool) -> int:
    """Make one dataset of what workers packed into PLACE with --shard-range: a folder, or s3://bucket/prefix.

    All ranges have to be there, finished, of one source and one set of arguments, and so do all shards; then
    feedline-pack.json is written for the whole. Exit status 2: they are of different packings; 3: something is missing,
    unfinished or changed, and what is said.
    """
    from feedline import packing

    merged = packing.merge_index(place)
    if as_json:
        print_json(merged._asdict())
        return exit_codes.FINE
    ranges = f" of {counted(merged.ranges, 'range')}" if merged.ranges else ", which was whole already"
    OUT.print(f"{counted(merged.samples, 'sample')} in {counted(merged.shards, 'shard')}{ranges}")
    OUT.print(f'feedline.open("{escape(merged.pattern)}")')
    return exit_codes.FINE
