# SPDX-License-Identifier: Apache-2.0
"""``feedline pack``: rewrites a dataset as shards: tar, MDS, TFRecord, LMDB or Parquet files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from rich.markup import escape

import feedline
from feedline import _engine
from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, bytes_text, counted, print_json, progress

if TYPE_CHECKING:
    from feedline.packing import Report

_MOST_ROWS = 20


@click.command(short_help="Rewrite a dataset as shards.")
@click.argument("source")
@click.argument("output", type=parameters.OUTPUT_PLACE)
@parameters.source_format(*parameters.PACKED_FORMATS)
@parameters.fields
@parameters.annotated
@click.option(
    "--shard-size",
    show_default="1GB; mds 64MiB, parquet 500MB, lmdb 1TiB",
    metavar="BYTES",
    help="Maximum size of a shard, such as 500MB, 5G or 1GiB.",
)
@click.option(
    "--samples-per-shard", type=click.IntRange(1), metavar="N", help="Number of samples per shard, instead of a size."
)
@click.option("--shuffle", is_flag=True, help="Pack in a random order.")
@click.option("--seed", default=0, type=click.IntRange(0), metavar="N", help="With --shuffle: random seed.")
@click.option(
    "--restart-interval",
    metavar="MCUS",
    type=parameters.RESTART_INTERVAL,
    show_default="none",
    help="Insert restart markers into JPEGs losslessly, every MCUS blocks; auto: depends on the image size.",
)
@click.option(
    "--raw",
    metavar="N",
    type=click.IntRange(0),
    help="Write decoded pixels, resized so that the smaller edge is N; 0: original size.",
)
@click.option(
    "--to",
    type=click.Choice(["tar", "wds", "mds", "tfrecord", "lmdb", "parquet", "zarr"]),
    default="tar",
    help="Format of the shards; wds is WebDataset's name for tar, mds is for MosaicML Streaming, zarr for volumes.",
)
@click.option("--patch", metavar="VOXELS", help="With --to zarr: the patches that will be read, such as 64,64,64.")
@click.option("--compression", metavar="NAME[:LEVEL]", help="With --to mds: compression, which is zstd, gz or bz2.")
@click.option(
    "--hashes",
    metavar="NAMES",
    show_default="sha256",
    help="With --to mds: checksums in the index, such as sha1,xxh64.",
)
@click.option("--keep-keys", is_flag=True, help="With --to mds, tfrecord or parquet: store keys in a column __key__.")
@click.option("--check", is_flag=True, help="Decode every image, so that no damaged image is packed.")
@click.option(
    "--on-error",
    default="raise",
    type=click.Choice(["raise", "skip"]),
    help="Stop at a bad sample, or skip it and list it.",
)
@click.option(
    "--shard-range",
    metavar="A:B",
    type=parameters.ShardRange(),
    help="Write only shards A to B-1, as one of several workers.",
)
@click.option("--count", is_flag=True, help="Print the number of shards, and write nothing.")
@click.option(
    "--spool", metavar="FOLDER", type=parameters.INPUT_FOLDER, help="Folder for files that wait to be uploaded."
)
@parameters.on_cluster
@parameters.num_workers("--jobs", help="Number of threads that read and write; auto: number of usable CPUs.")
@parameters.as_json()
def pack(
    source: str,
    output: str,
    format_: str | None,
    fields: str | None,
    split: str | None,
    config: str | None,
    image_folder: str | None,
    shard_size: str | None,
    samples_per_shard: int | None,
    shuffle: bool,
    seed: int,
    restart_interval: int | Literal["auto"] | None,
    raw: int | None,
    to: Literal["tar", "wds", "mds", "tfrecord", "lmdb", "parquet", "zarr"],
    patch: str | None,
    compression: str | None,
    hashes: str | None,
    keep_keys: bool,
    check: bool,
    on_error: str,
    shard_range: tuple[int, int] | None,
    count: bool,
    spool: Path | None,
    on: str | None,
    num_workers: int | Literal["auto"],
    as_json: bool,
) -> int:
    """Write SOURCE as shards into OUTPUT, a folder or s3://bucket/prefix.

    SOURCE is any source of `feedline inspect` except arrays and pixels: a folder of class folders, tars
    ("shards/{000..146}.tar"), TFRecord, Arrow or Parquet files, MDS, LitData, LMDB, a table; or, with --fields, a
    folder with a file for each field of a sample. All files of a sample and all features of a record are packed, and
    the columns of Arrow and Parquet files that fields use. If packing is interrupted, run the same command again to
    resume. Shards use WebDataset's layout, or the format of --to; all formats except tar require all samples to have
    the same columns. feedline-pack.json next to them describes their contents. Exit status 1: samples were skipped; 3:
    a sample cannot be read or is damaged, or OUTPUT cannot be written.

    With --to zarr, SOURCE has volumes, and each sample becomes a Zarr group whose chunks fit the patches of --patch;
    only --fields and --json can be combined with it.

    With --raw, every image is decoded, and OUTPUT is a single file of 8-bit pixels, which is read without decoding.

    Do not use `find | sort | xargs tar cf` instead: xargs splits a long list, and each tar replaces the previous one.
    """
    from feedline import packing

    if patch is not None and to != "zarr":
        raise click.UsageError("--patch requires --to zarr")
    if to == "zarr":
        return _pack_volumes(source, output, fields, patch, as_json)
    if raw is not None:
        if (
            any((shard_size, samples_per_shard, shuffle, shard_range, count, check, on))
            or restart_interval is not None
            or to not in ("tar", "wds")
            or on_error != "raise"
        ):
            raise click.UsageError(
                "--raw writes one file with all samples; it can only be combined with --format, --fields, --split, "
                "--config, --image-folder, --spool, --num-workers and --json"
            )
        said: dict[str, Any] = {"format": format_, "fields": fields, "split": split, "images": image_folder}
        said["config"] = config
        return _pack_pixels(source, output, said, raw, spool, num_workers, as_json)
    if Path(output).is_file():
        raise click.UsageError(f"OUTPUT {output!r} is a file; pass a folder for the shards")
    if shard_size is not None and samples_per_shard is not None:
        raise click.UsageError("pass --shard-size or --samples-per-shard, not both")
    transcoders: list[packing.Transcoder] = [packing.Check()] if check else []
    if restart_interval is not None:
        transcoders.append(packing.RestartMarkers(None if isinstance(restart_interval, str) else restart_interval))
    plan: dict[str, Any] = {
        "format": format_,
        "fields": fields,
        "split": split,
        "config": config,
        "images": image_folder,
        "shard_bytes": shard_size,
        "samples_per_shard": samples_per_shard,
        "shuffle": shuffle,
        "seed": seed,
        "transcoders": transcoders,
        "to": to,
        "compression": compression,
        "hashes": None if hashes is None else [name.strip() for name in hashes.split(",") if name.strip()],
        "keep_keys": keep_keys,
    }
    if count:
        shards = packing.shard_count(source, **plan, num_workers=num_workers)
        print_json({"shards": shards}) if as_json else OUT.print(str(shards))
        return exit_codes.FINE
    with progress(None, "packing") as bar:
        report = packing.pack(
            source,
            output,
            **plan,
            shard_range=shard_range,
            on=on,
            spool=spool,
            on_error="skip" if on_error == "skip" else "raise",
            num_workers=num_workers,
            progress=lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total),
        )
    if as_json:
        print_json(report._asdict() | {"skipped": [vars(skipped) for skipped in report.skipped]})
    else:
        _print(report)
    return exit_codes.PROBLEMS_FOUND if report.skipped else exit_codes.FINE


def _pack_volumes(source: str, output: str, fields: str | None, patch: str | None, as_json: bool) -> int:
    from feedline import packing

    try:
        extents = [int(extent) for extent in (patch or "").split(",")]
    except ValueError:
        raise click.UsageError(
            f"--to zarr needs --patch, the voxels of a patch such as 64,64,64, not {patch!r}"
        ) from None
    paths = [tuple(source.split(","))] if "," in source else source
    report = packing.pack_volumes(paths, output, patch=extents, fields=fields.split(",") if fields else None)
    if as_json:
        print_json(report._asdict())
    else:
        chunk = "x".join(map(str, report.chunk))
        OUT.print(f"{counted(report.volumes, 'volume')}, {bytes_text(report.bytes)} written in chunks of {chunk}")
    return exit_codes.FINE


def _pack_pixels(
    source: str,
    output: str,
    said: dict[str, Any],
    size: int,
    spool: Path | None,
    num_workers: int | Literal["auto"],
    as_json: bool,
) -> int:
    dataset = feedline.open(source, **said)
    total = len(dataset)
    with progress(None, "packing") as bar:
        packed = feedline.pack_pixels(
            dataset.resize(size) if size else dataset,
            output,
            num_workers=num_workers,
            spool=spool,
            progress=lambda done: bar.update(bar.task_ids[0], completed=done, total=total),
        )
    written = _engine.StoredSource(output).object(os.fsencode(output)).size
    if as_json:
        print_json({"output": output, "samples": len(packed), "bytes": written})
    else:
        OUT.print(f"{counted(len(packed), 'sample')} as pixels, {bytes_text(written)}")
        if "://" in output:
            OUT.print(f"pixels can only be read from local files; run feedline stage {escape(output)} FOLDER")
        else:
            OUT.print(f'feedline.open("{escape(output)}")')
    return exit_codes.FINE


def _print(report: Report) -> None:
    found = f", of which {report.shards_found:,} already existed" if report.shards_found else ""
    written = f"{counted(report.samples, 'sample')} in {counted(report.shards, 'shard')}"
    OUT.print(f"{written}{found}, {bytes_text(report.bytes)}")
    if report.rewritten:
        growth = 100 * (report.bytes_after / report.bytes_before - 1)
        OUT.print(f"{report.rewritten:,} of {report.files:,} files rewritten: total size {growth:+.1f} %")
    for skipped in report.skipped[:_MOST_ROWS]:
        OUT.print(f"[yellow]skipped[/] {escape(skipped.why)}")
    if len(report.skipped) > _MOST_ROWS:
        OUT.print(f"... and {len(report.skipped) - _MOST_ROWS:,} more; feedline-pack.json lists all")
    fields = f", fields={report.fields!r}" if report.fields else ""
    OUT.print(escape(f'feedline.open("{report.pattern}"{fields})'))
