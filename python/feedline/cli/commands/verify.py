# SPDX-License-Identifier: Apache-2.0
"""``feedline verify``: checks that a dataset is complete and undamaged."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, bytes_text, counted, print_json, progress, table

if TYPE_CHECKING:
    from feedline.findings import Finding
    from feedline.verifying import Verification

_STYLE = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_MOST_ROWS = 20


@click.command(short_help="Check that a dataset is complete and undamaged.")
@click.argument("source")
@parameters.source_format(*parameters.FORMATS)
@parameters.fields
@parameters.annotated
@click.option("--decode", is_flag=True, help="Decode every field of every sample, as a loader does.")
@click.option(
    "--world",
    "world_size",
    default=8,
    type=click.IntRange(1, 65_536),
    metavar="N",
    help="Number of ranks that together must read each sample exactly once.",
)
@click.option(
    "--resume",
    type=parameters.OutputPath(dir_okay=False),
    metavar="FILE",
    help="Save progress in FILE, and resume from it after an interruption.",
)
@click.option(
    "--cache", metavar="FOLDER", help="Read through this local cache of remote objects; see docs/storage-cache.md."
)
@parameters.on_cluster
@parameters.num_workers(help="Number of reading threads; auto: number of usable CPUs.")
@parameters.as_json()
def verify(
    source: str,
    format_: str | None,
    fields: str | None,
    split: str | None,
    config: str | None,
    image_folder: str | None,
    decode: bool,
    world_size: int,
    resume: str | None,
    cache: str | None,
    on: str | None,
    num_workers: int | Literal["auto"],
    as_json: bool,
) -> int:
    """Read all of SOURCE, and report its problems by shard, sample and byte offset, with a fix for each.

    Shards are read completely and compared with the checksums of `feedline pack`, stored indexes with their shards, and
    samples with each other. Exit status 1: a finding of severity "error" or "warning"; 3: there is nothing to read.
    """
    from feedline import verifying

    with progress(None, "verifying") as bar:
        verified = verifying.verify(
            source,
            format=format_,
            fields=fields,
            split=split,
            config=config,
            images=image_folder,
            cache=cache,
            decode=decode,
            world_size=world_size,
            resume=resume,
            num_workers=num_workers,
            on=on,
            progress=lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total),
        )
    if as_json:
        print_json(verified.as_dict())
    else:
        _print(verified)
    return exit_codes.FINE if verified.sound else exit_codes.PROBLEMS_FOUND


def _print(verified: Verification) -> None:
    OUT.print(f"[bold]{escape(verified.source)}[/]")
    shards = f" in {counted(verified.shards, 'shard')}" if verified.shards else ""
    read = "read and decoded" if verified.decoded else "read"
    OUT.print(f"{verified.format}: {counted(verified.samples, 'sample')}{shards} {read}, {bytes_text(verified.bytes)}")
    if verified.parts_found:
        OUT.print(f"{verified.parts_found:,} parts were already verified")
    if verified.shards:
        OUT.print(f"{counted(verified.checksums, 'shard')} compared with the checksums that feedline pack stored")
    if verified.order_exact:
        OUT.print(f"{counted(verified.world_size, 'rank')} together read each sample exactly once")
    _print_classes(verified.classes)
    shown = verified.findings[:_MOST_ROWS]
    for finding, following in zip_longest(shown, shown[1:]):
        _print_finding(finding)
        if finding.fix and (following is None or following.fix != finding.fix):  # once for equal problems
            OUT.print(f"  [dim]{escape(finding.fix)}[/]")
    if len(verified.findings) > _MOST_ROWS:
        OUT.print(f"... and {len(verified.findings) - _MOST_ROWS:,} more findings; --json lists all")
    if verified.sound:
        OUT.print("[green]no problems found[/]" + ("" if verified.decoded else " in the files"))
    if not verified.decoded:
        OUT.print("images were not decoded; pass --decode to check them as well")


def _print_finding(finding: Finding) -> None:
    location = ", ".join(
        f"byte {value:,}" if name == "offset" else str(value)
        for name, value in finding.about.items()
        if value not in ("", None) and str(value) not in finding.text
    )
    OUT.print(
        f"[{_STYLE.get(finding.severity, '')}]{finding.severity}[/] [bold]{finding.code}[/] {escape(finding.text)}"
        + (f" [dim]({escape(location)})[/]" if location else "")
    )


def _print_classes(classes: dict[str, int]) -> None:
    if not classes:
        return
    rows = [(escape(name), f"{count:,}") for name, count in list(classes.items())[:_MOST_ROWS]]
    rest = list(classes.values())[_MOST_ROWS:]
    if rest:
        rows.append((f"{len(rest):,} others", f"{sum(rest):,}"))
    table(("class", "samples"), rows)
