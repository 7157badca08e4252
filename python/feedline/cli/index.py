# SPDX-License-Identifier: Apache-2.0
"""``feedline index``: the listing with which a folder can be opened behind HTTP."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, counted, print_json


@click.command("index", short_help="Write the listing of a folder, for HTTP.")
@click.argument("folder", type=parameters.INPUT_FOLDER)
@parameters.as_json()
def index(folder: Path, as_json: bool) -> int:
    """Write what FOLDER holds into feedline-listing.txt in it, so that feedline.open("https://host/folder/") finds it.

    HTTP has no listings. Run it again where files come or go; buckets need none. Exit status 3: a folder cannot be
    listed, or the file cannot be written.
    """
    from feedline.packing import listing

    written = listing.write_listing(folder)
    if as_json:
        print_json(written._asdict())
        return exit_codes.FINE
    empty = f" and {counted(written.folders, 'empty folder')}" if written.folders else ""
    OUT.print(f"{counted(written.files, 'file')}{empty} in {escape(written.listing)}")
    return exit_codes.FINE
