# SPDX-License-Identifier: Apache-2.0
"""``feedline stage``: copies a dataset to this machine."""

from __future__ import annotations

from typing import Literal

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, bytes_text, counted, print_json, progress


@click.command(short_help="Copy a dataset to a local folder.")
@click.argument("source")
@click.argument("folder", type=parameters.OUTPUT_PATH)
@parameters.source_format(*parameters.FORMATS)
@parameters.fields
@click.option("--limit", metavar="BYTES", type=parameters.ByteSize(), help="Maximum size to copy: 100GiB, 500MB.")
@parameters.num_workers(help="Threads that copy; auto: number of usable CPUs, at least 4.")
@parameters.as_json()
def stage(
    source: str,
    folder: str,
    format_: str | None,
    fields: str | None,
    limit: int | None,
    num_workers: int | Literal["auto"],
    as_json: bool,
) -> int:
    """Copy SOURCE into FOLDER, for example on a local disk or in /dev/shm, to open it there.

    SOURCE is a folder of class folders, or shards ("s3://bucket/{000..146}.tar"). Free space is checked first. Each
    file is compared with its source, and gets its name once it is complete; run the same command again to resume after
    an interruption. Exit status 2: FOLDER contains other files, or --limit is too low; 3: not enough space, or the
    source cannot be read.
    """
    from feedline import staging

    with progress(None, "staging") as bar:
        staged = staging.stage(
            source,
            folder,
            format=format_,
            fields=fields,
            limit=limit,
            num_workers=num_workers,
            progress=lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total),
        )
    if as_json:
        print_json(staged._asdict())
        return exit_codes.FINE
    found = f", of which {staged.files_found:,} already existed" if staged.files_found else ""
    OUT.print(
        f"{counted(staged.samples, 'sample')} in {counted(staged.files, 'file')}{found}, {bytes_text(staged.bytes)}"
    )
    OUT.print(f'feedline.open("{escape(staged.opens)}")')
    return exit_codes.FINE
