# SPDX-License-Identifier: Apache-2.0
"""``feedline inspect``: shows the contents of a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.markup import escape

import feedline
from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, bytes_text, counted, print_json, progress, steps, table
from feedline.data.inspect import inspection, stored_images
from feedline.data.sources import shown_source
from feedline.data.storage import storage_types
from feedline.findings import Finding

_STYLE = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_MOST_ROWS = 20
# reports nothing about unchecked images; a file of pixels is checked record by record
_UNDECODED = dict.fromkeys(
    parameters.PACKED_FORMATS,
    ", if their images decode: --show decodes some, `feedline pack --check` all",
)


@click.command(short_help="Show the contents of a source, and the files that a reader would drop.")
@click.argument("source")
@parameters.source_format(*parameters.FORMATS)
@parameters.fields
@parameters.annotated
@click.option(
    "--show",
    type=parameters.OutputPath(dir_okay=False),
    metavar="FILE",
    help="Write a contact sheet of images with masks, boxes and labels to this .png or .jpg file (needs Pillow).",
)
@click.option(
    "--images",
    default=24,
    type=click.IntRange(1, 400),
    metavar="N",
    help="With --show: number of samples on the contact sheet.",
)
@click.option("--all", "all_images", is_flag=True, help="Examine the headers of all images, instead of up to 200.")
@parameters.on_cluster
@parameters.as_json()
def inspect(
    source: str,
    format_: str | None,
    fields: str | None,
    split: str | None,
    config: str | None,
    image_folder: str | None,
    show: str | None,
    images: int,
    all_images: bool,
    on: str | None,
    as_json: bool,
) -> int:
    """Show the contents of SOURCE, and the files that a reader would drop, merge or reject.

    SOURCE is a folder of class folders; a .tar or .tar.gz, a TFRecord, Arrow or Parquet file, an LMDB database, a .npy
    or .npz file, a table, or a brace list of them ("shards/{000..146}.tar"); a folder of MDS or LitData with its
    index.json, or one saved by Hugging Face's datasets; annotations of COCO, VOC or YOLO; or, with --fields, a folder
    with a file for each field of a sample. Exit status 1: a finding of severity "error" or "warning"; 3: there is
    nothing to read.
    """
    if on is not None and not all_images:
        raise click.UsageError("--on needs --all: without it, only a few images are examined")
    said: dict[str, Any] = {"format": format_, "fields": fields, "split": split, "images": image_folder}
    said["config"] = config
    found = feedline.inspect(source, **said)
    images_seen: stored_images.StoredImages | None = None
    if found.samples and all_images:
        with progress(None, "examining") as bar:
            images_seen = stored_images.look_at_all(
                *(source, format_, fields, image_folder, split, config),
                on=on,
                progress=lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total),
            )
    elif found.samples:
        images_seen = stored_images.look(source, format_, fields, image_folder, split, config)
    findings = inspection.findings_of(found) + (images_seen.findings() if images_seen else [])
    storage = storage_types.findings_of_source(source)
    sheet: dict[str, Any] | None = None
    if show is not None:
        sheet = _write_sheet(source, said, Path(show), images)
    name = shown_source(source)
    if as_json:
        seen = images_seen.as_dict() if images_seen else None
        sheet_told = {"contact_sheet": sheet} if sheet else {}
        print_json(_as_dict(name, found, findings, storage) | {"images": seen} | sheet_told)
    else:
        _print(name, found, images_seen, findings, sheet)
        _print_storage(storage)
    if not found.samples and any(finding.code == "unreadable_file" for finding in findings):
        return exit_codes.FAILED
    bad = any(finding.severity != "note" for finding in findings) or bool(sheet and sheet["damaged"])
    return exit_codes.PROBLEMS_FOUND if bad else exit_codes.FINE


def _write_sheet(source: str, said: dict[str, Any], path: Path, images: int) -> dict[str, Any]:
    from feedline.data.inspect import contact_sheet  # imports only needed for pictures

    contact_sheet.check_path(path)
    dataset = feedline.open(source, **said)
    count = min(images, len(dataset))
    with steps(count, "decoding") as advance:
        sheet = contact_sheet.sheet_of(dataset, count, epochs=1, seed=0, step=advance)
    sheet.save(path)
    return {"path": str(path), "images": count, "damaged": sheet.damaged}


def _as_dict(
    source: str, found: feedline.Inspection, findings: list[Finding], storage: list[Finding]
) -> dict[str, Any]:
    plain = (
        "format",
        "samples",
        "shards",
        "bytes",
        "smallest_bytes",
        "largest_bytes",
        "fields",
        "extensions",
        "classes",
    )
    return {
        "source": source,
        **{name: getattr(found, name) for name in plain},
        "findings": [{"code": one.code, "severity": one.severity, **one.about, "text": one.text} for one in findings],
        "storage": [
            {"code": one.code, "severity": one.severity, **one.about, "text": one.text, "fix": one.fix}
            for one in storage
        ],
    }


def _print(
    source: str,
    found: feedline.Inspection,
    images: stored_images.StoredImages | None,
    findings: list[Finding],
    sheet: dict[str, Any] | None,
) -> None:
    OUT.print(f"[bold]{escape(source)}[/]")
    shards = f" in {counted(found.shards, 'shard')}" if found.shards else ""
    OUT.print(f"{found.format}: {counted(found.samples, 'sample')}{shards}, {bytes_text(found.bytes)}")
    if found.samples:
        OUT.print(f"images of {_sizes(found)}, {'as pixels' if found.format == 'pixels' else 'encoded'}")
    if images:
        OUT.print(images.text())
    OUT.print(f"fields: {', '.join(found.fields) or 'none'}")
    _print_counts("extension", "files", found.extensions)
    _print_counts("class", "samples", found.classes)
    for entry in findings[:_MOST_ROWS]:
        location = ", ".join(part for part in entry.about.values() if part)
        OUT.print(
            f"[{_STYLE.get(entry.severity, '')}]{entry.severity}[/] [bold]{entry.code}[/] "
            f"{escape(entry.text)}" + (f" [dim]({escape(location)})[/]" if location else "")
        )
    if len(findings) > _MOST_ROWS:
        OUT.print(f"... and {len(findings) - _MOST_ROWS:,} more findings; --json lists all")
    if not findings:
        OUT.print("[green]no samples would be dropped, merged or rejected[/]" + _UNDECODED.get(found.format, ""))
    if sheet:
        OUT.print(f"contact sheet of {counted(sheet['images'], 'image')}: {escape(sheet['path'])}")
        for damaged in sheet["damaged"]:
            OUT.print(f"[bold red]error[/] {escape(damaged)}")


def _print_storage(storage: list[Finding]) -> None:
    for one in storage:
        OUT.print(f"[{_STYLE['note']}]storage[/] [bold]{one.code}[/] {escape(one.text)}")
        if one.fix:
            OUT.print(f"        {escape(one.fix)}")


def _sizes(found: feedline.Inspection) -> str:
    smallest, largest = bytes_text(found.smallest_bytes), bytes_text(found.largest_bytes)
    return smallest if smallest == largest else f"{smallest} to {largest}"


def _print_counts(name: str, unit: str, counts: dict[str, int]) -> None:
    if not counts:
        return
    rows = [(key, f"{count:,}") for key, count in list(counts.items())[:_MOST_ROWS]]
    if len(counts) > _MOST_ROWS:
        rest = list(counts.values())[_MOST_ROWS:]
        rows.append((f"{len(rest):,} others", f"{sum(rest):,}"))
    table((name, unit), rows)
