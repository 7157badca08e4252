# SPDX-License-Identifier: Apache-2.0
"""``feedline merge-index``: merges shard ranges that several workers packed into one dataset."""

from __future__ import annotations

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, counted, print_json


@click.command("merge-index", short_help="Merge shard ranges packed by several workers.")
@click.argument("place", type=parameters.OUTPUT_PLACE)
@parameters.as_json()
def merge_index(place: str, as_json: bool) -> int:
    """Merge the shards that workers packed with --shard-range into PLACE, a folder or s3://bucket/prefix.

    All ranges must be present, finished, and packed from one source with the same arguments, and all their shards must
    exist; then feedline-pack.json is written for the whole dataset. Exit status 2: the ranges have different sources or
    arguments;
    3: files are missing, unfinished or changed, and are listed.
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
