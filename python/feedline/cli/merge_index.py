# SPDX-License-Identifier: Apache-2.0
"""``feedline merge-index``: merges ranges of shards packed by many workers into one dataset."""

from __future__ import annotations

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, counted, print_json


@click.command("merge-index", short_help="Merge ranges of packed shards.")
@click.argument("place", type=parameters.OUTPUT_PLACE)
@parameters.as_json()
def merge_index(place: str, as_json: bool) -> int:
    """Merge the shards that workers packed into PLACE with --shard-range: a folder, or s3://bucket/prefix.

    All ranges must be present, finished, and from one source with the same arguments, and so must all shards; then
    feedline-pack.json is written for the whole dataset. Exit status 2: the ranges have different sources or arguments;
    3: something is missing, unfinished or changed, and is reported.
    """
    from feedline import packing

    merged = packing.merge_index(place)
    if as_json:
        print_json(merged._asdict())
        return exit_codes.FINE
    ranges = f" of {counted(merged.ranges, 'range')}" if merged.ranges else ", which was already complete"
    OUT.print(f"{counted(merged.samples, 'sample')} in {counted(merged.shards, 'shard')}{ranges}")
    OUT.print(f'feedline.open("{escape(merged.pattern)}")')
    return exit_codes.FINE
