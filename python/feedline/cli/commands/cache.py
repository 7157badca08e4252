# SPDX-License-Identifier: Apache-2.0
"""``feedline cache``: lists and maintains a local cache of objects from remote storage."""

from __future__ import annotations

import datetime

import click
from rich.markup import escape

from feedline import _engine
from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, bytes_text, counted, print_json, progress, table

_NS = 1_000_000_000


@click.group(short_help="List, verify, prune or clear a cache of remote objects.")
def cache() -> None:
    """Maintain PATH, the folder passed as feedline.open(..., cache=PATH), which contains copies of remote objects.

    Jobs may use the cache at the same time: copies that are being read are not removed. Exit status 2: PATH is not a
    cache; 3: PATH cannot be read or written.
    """


@cache.command("ls", short_help="List the copies in a cache.")
@click.argument("path")
@parameters.as_json()
def ls(path: str, as_json: bool) -> int:
    """List the copies in PATH: the object, its size, when it was last opened, and whether it is open now."""
    held = _engine.list_cache(path)
    if as_json:
        print_json(
            {
                "path": path,
                "disk_bytes": held.disk_bytes,
                "objects": [
                    {"name": copy.name, "bytes": copy.bytes, "used": _when(copy.used_ns), "in_use": copy.in_use}
                    for copy in held.objects
                ],
            }
        )
        return exit_codes.FINE
    if held.objects:
        rows = [
            (escape(copy.name or copy.copy), bytes_text(copy.bytes), _when(copy.used_ns), "yes" if copy.in_use else "")
            for copy in held.objects
        ]
        table(("object", "size", "used last", "open"), rows)
    OUT.print(f"{counted(len(held.objects), 'object')}, {bytes_text(held.disk_bytes)} on disk")
    return exit_codes.FINE


@cache.command("verify", short_help="Compare every copy with its checksum, and remove damaged copies.")
@click.argument("path")
@parameters.as_json()
def verify(path: str, as_json: bool) -> int:
    """Read every copy in PATH, compare it with its checksum, and remove damaged ones. Exit status 1: copies were
    damaged.
    """
    from feedline.data.storage import node_cache

    with progress(None, "verifying") as bar:
        verified, damaged = node_cache.verify(
            path, lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total)
        )
    if as_json:
        print_json({"path": path, "objects": verified, "damaged": [copy._asdict() for copy in damaged]})
    else:
        for copy in damaged:
            OUT.print(f"[red]damaged[/] {escape(copy.name)}: {copy.what}")
        OUT.print(f"{counted(verified, 'object')} verified, {len(damaged):,} damaged")
    return exit_codes.PROBLEMS_FOUND if damaged else exit_codes.FINE


@cache.command("prune", short_help="Make a cache smaller.")
@click.argument("path")
@click.option(
    "--limit", required=True, metavar="BYTES", type=parameters.ByteSize(), help="Maximum size: 100GiB, 500MB."
)
@parameters.as_json()
def prune(path: str, limit: int, as_json: bool) -> int:
    """Remove files left by killed jobs, and the least recently used copies until PATH is no larger than --limit.

    Exit status 1: the cache is still larger, because the remaining copies are being read.
    """
    removal = _engine.prune_cache(path, limit)
    _print_removal(path, removal, as_json)
    return exit_codes.PROBLEMS_FOUND if removal.disk_bytes > limit else exit_codes.FINE


@cache.command("clear", short_help="Remove all copies that are not being read.")
@click.argument("path")
@parameters.as_json()
def clear(path: str, as_json: bool) -> int:
    """Remove all copies in PATH that are not being read. Other files stay. Exit status 1: copies remain that are being
    read.
    """
    removal = _engine.clear_cache(path)
    _print_removal(path, removal, as_json)
    return exit_codes.PROBLEMS_FOUND if removal.in_use else exit_codes.FINE


def _print_removal(path: str, removal: _engine.CacheRemoval, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "path": path,
                "removed": removal.objects,
                "in_use": removal.in_use,
                "disk_bytes": removal.disk_bytes,
            }
        )
        return
    left = f"{removal.in_use:,} copies are being read and were not removed; " if removal.in_use else ""
    OUT.print(f"{counted(removal.objects, 'object')} removed; {left}{bytes_text(removal.disk_bytes)} remain on disk")


def _when(ns: int) -> str:
    return datetime.datetime.fromtimestamp(ns // _NS).astimezone().isoformat(" ", "seconds")
