# SPDX-License-Identifier: Apache-2.0
"""``feedline stage``: copies a dataset to this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import ERR, OUT, bytes_text, counted, print_json, progress


@click.command(short_help="Copy a dataset to a local folder.")
@click.argument("source")
@click.argument("folder", type=parameters.OUTPUT_PATH)
@parameters.source_format(*parameters.FORMATS)
@parameters.fields
@parameters.of_hub
@click.option(
    "--limit", metavar="BYTES", type=parameters.ByteSize(), help="Maximum size to copy, such as 100GiB or 500MB."
)
@parameters.num_workers(help="Number of copying threads; auto: number of usable CPUs, at least 4.")
@parameters.as_json()
def stage(
    source: str,
    folder: str,
    format_: str | None,
    fields: str | None,
    split: str | None,
    config: str | None,
    limit: int | None,
    num_workers: int | Literal["auto"],
    as_json: bool,
) -> int:
    """Copy SOURCE into FOLDER, for example on a local disk or in /dev/shm, to read it from there.

    SOURCE is a folder of class folders, shards ("s3://bucket/{000..146}.tar"), or the shards of a dataset on the
    Hugging Face Hub ("hf://datasets/ORG/NAME"). Free space is checked before copying.
    Each file is compared with its source, and renamed to its final name once it is complete; after an interruption, run
    the same command again to resume. Exit status 2: FOLDER contains other files, or --limit is too low; 3: not enough
    free space, or the source cannot be read.
    """
    from feedline import staging
    from feedline.stage.room import memory_note

    with progress(None, "staging") as bar:
        staged = staging.stage(
            source,
            folder,
            format=format_,
            fields=fields,
            split=split,
            config=config,
            limit=limit,
            num_workers=num_workers,
            progress=lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total),
        )
    note = memory_note(staged.bytes, Path(staged.folder))
    if note:
        ERR.print(f"[yellow]note[/] {escape(note)}")
    if as_json:
        print_json(staged._asdict())
        return exit_codes.FINE
    found = f", of which {staged.files_found:,} already existed" if staged.files_found else ""
    OUT.print(
        f"{counted(staged.samples, 'sample')} in {counted(staged.files, 'file')}{found}, {bytes_text(staged.bytes)}"
    )
    OUT.print(f'feedline.open("{escape(staged.opens)}")')
    return exit_codes.FINE
