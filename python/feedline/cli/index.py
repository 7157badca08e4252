# SPDX-License-Identifier: Apache-2.0
"""``feedline index``: writes the listing needed to open a folder over HTTP, and indexes for other programs."""

from __future__ import annotations

import os

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, counted, print_json

_KINDS = ("dali", "energon", "tfindex", "wids", "timm", "open_clip")  # pack.foreign_indexes.KINDS


@click.command("index", short_help="Write the listing of a folder for HTTP, or an index for other programs.")
@click.argument("source")
@click.option(
    "--as",
    "kind",
    type=click.Choice(_KINDS),
    help="Write another program's index of tars or TFRecord files: one next to each file, or one list of all files.",
)
@click.option(
    "--output",
    type=parameters.OutputFile(),
    show_default="next to the first shard: index.json, _info.json, sizes.json",
    help="Output path of a list: wids, timm, open_clip.",
)
@click.option(
    "--split", metavar="NAME", default="train", show_default=True, help="Dataset name in a list of wids or timm."
)
@parameters.as_json()
def index(source: str, kind: str | None, output: os.PathLike[str] | None, split: str, as_json: bool) -> int:
    """Write a listing of the folder SOURCE to feedline-listing.txt in it, so that feedline.open("https://host/folder/")
    can read it; or, for shards, the index selected by --as.

    HTTP cannot list folders. Run this again when files are added or removed; buckets do not need it. Exit status 2: the
    index cannot represent the source; 3: a folder cannot be listed, a shard is damaged, or a file cannot be written.
    """
    if kind is None:
        return _listing(source, as_json)
    from feedline.pack import foreign_indexes

    written = foreign_indexes.write(source, kind, output=None if output is None else os.fspath(output), split=split)
    if as_json:
        print_json(written._asdict())
        return exit_codes.FINE
    files = written.files[0] if len(written.files) == 1 else f"{written.files[0]} and {len(written.files) - 1} more"
    of = f"{counted(written.samples, 'sample')} in {counted(written.shards, 'shard')}"
    OUT.print(f"{of}: {escape(files)}")
    return exit_codes.FINE


def _listing(folder: str, as_json: bool) -> int:
    from feedline.pack import listing

    written = listing.write_listing(folder)
    if as_json:
        print_json(written._asdict())
        return exit_codes.FINE
    empty = f" and {counted(written.folders, 'empty folder')}" if written.folders else ""
    OUT.print(f"{counted(written.files, 'file')}{empty} in {escape(written.listing)}")
    return exit_codes.FINE
