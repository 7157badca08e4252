# SPDX-License-Identifier: Apache-2.0
"""``feedline index``: writes a listing for reading a folder over HTTP, JPEG checkpoints, and indexes for other
programs.
"""

from __future__ import annotations

import os

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, counted, print_json

_KINDS = ("dali", "energon", "tfindex", "wids", "timm", "open_clip")  # pack.foreign_indexes.KINDS


@click.command("index", short_help="Write a folder listing for HTTP, JPEG checkpoints, or another program's index.")
@click.argument("source")
@click.option(
    "--as",
    "kind",
    type=click.Choice(_KINDS),
    help="Write another program's index of tar or TFRecord files: one next to each file, or one list of all files.",
)
@click.option(
    "--output",
    type=parameters.OutputFile(),
    show_default="next to the first shard: index.json, _info.json, sizes.json",
    help="Output path of the list of wids, timm or open_clip.",
)
@click.option(
    "--split", metavar="NAME", default="train", show_default=True, help="Dataset name in the list of wids or timm."
)
@click.option(
    "--checkpoints",
    is_flag=True,
    help="Record checkpoints in all JPEGs of the dataset, from which feedline.open can start decoding crops.",
)
@parameters.on_cluster
@parameters.as_json()
def index(
    source: str,
    kind: str | None,
    output: os.PathLike[str] | None,
    split: str,
    checkpoints: bool,
    on: str | None,
    as_json: bool,
) -> int:
    """Write a listing of the folder SOURCE to feedline-listing.txt in this folder, so that
    feedline.open("https://host/folder/") can read the folder; for shards, write the index format selected by --as; for
    a dataset of images, write checkpoints of its JPEGs.

    HTTP has no way to list folders. Run the command again when files are added or removed. Buckets need no listing.

    Exit status 2: the index format cannot represent the source; 3: a folder cannot be listed, a shard is damaged, or a
    file cannot be written.
    """
    if on is not None and kind is None:
        raise click.UsageError("--on needs --as: only the indexes of other programs are written on Ray")
    if checkpoints:
        if kind is not None:
            raise click.UsageError("--checkpoints and --as write different files: run the command once for each")
        return _checkpoints(source, as_json)
    if kind is None:
        return _listing(source, as_json)
    from feedline.pack import foreign_indexes

    written = foreign_indexes.write(
        source, kind, output=None if output is None else os.fspath(output), split=split, on=on
    )
    if as_json:
        print_json(written._asdict())
        return exit_codes.FINE
    files = written.files[0] if len(written.files) == 1 else f"{written.files[0]} and {len(written.files) - 1} more"
    of = f"{counted(written.samples, 'sample')} in {counted(written.shards, 'shard')}"
    OUT.print(f"{of}: {escape(files)}")
    return exit_codes.FINE


def _checkpoints(source: str, as_json: bool) -> int:
    import feedline
    from feedline.machine import limits

    images, size, path = feedline.open(source)._engine.make_checkpoints(limits.usable_cpus())
    if as_json:
        print_json({"images": images, "bytes": size, "path": path})
    elif images == 0:
        OUT.print("no JPEG is large enough for checkpoints")
    else:
        OUT.print(f"checkpoints of {counted(images, 'image')}, {size:,} bytes, in {escape(path)}")
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
