# SPDX-License-Identifier: Apache-2.0
"""``feedline env export``, ``create``, ``list`` and ``clean``: exports, creates, lists and removes environments."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import ERR, OUT, bytes_text, counted, print_json, table

if TYPE_CHECKING:
    from feedline.env.create.creation import Created
    from feedline.env.create.homes import Home

_FORMS = ("environment.yml", "explicit", "requirements", "pylock", "pixi", "dockerfile")
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_DAY_S = 86_400
_STALE_DAYS = 180


def _stale_days(command: Any) -> Any:
    help = "Number of days without use after which an environment is stale."
    return click.option("--stale-days", type=click.IntRange(1), default=_STALE_DAYS, metavar="N", help=help)(command)


@click.command(short_help="Export an environment to another tool's format.")
@click.option("--to", "form", required=True, type=click.Choice(_FORMS), help="The form.")
@click.option(
    "--from",
    "source",
    metavar="PLACE",
    show_default="the environment that runs feedline",
    help="Export the environment in this folder, or this snapshot.",
)
@click.option("--name", metavar="NAME", show_default="its folder's", help="Name of the environment in the file.")
@click.option(
    "--index-url", "indexes", multiple=True, metavar="URL", show_default="PyPI", help="Index for looking up hashes."
)
@click.option(
    "--find-links",
    "folders",
    multiple=True,
    type=_FOLDER,
    metavar="FOLDER",
    help="Additional index, used first, for looking up hashes.",
)
@click.option("--no-index", is_flag=True, help="Do not look up hashes on an index.")
@click.option("--export-file", type=parameters.OUTPUT_FILE, help="Write to this file instead of standard output.")
def export(
    form: str,
    source: str | None,
    name: str | None,
    indexes: tuple[str, ...],
    folders: tuple[Path, ...],
    no_index: bool,
    export_file: Path | None,
) -> int:
    """Export an environment with exact versions, builds and hashes, for this platform, to a format that other tools
    read.

    Stderr lists the information that the format omits. Either all packages have hashes or none do, as pip requires.
    Exit status 2: the format cannot represent this environment.
    """
    from feedline.env.archives import Archives
    from feedline.env.exports.writing import export as written
    from feedline.env.load import listing_at, listing_of_own
    from feedline.env.locks.listing import PYPI
    from feedline.record import replace

    listing = listing_of_own() if source is None else listing_at(source)
    if listing.kind != "snapshot":
        raise click.UsageError(f"{source} is a lock file; --from requires the folder of an environment or a snapshot")
    archives = Archives(() if no_index else indexes or (PYPI,), folders, of_torch=not no_index)
    made = written(listing, name or str(listing.facts.get("name") or "environment"), form, archives)
    for note in made.notes:
        ERR.print(f"[yellow]note[/] {escape(note)}")
    if export_file is None:
        print(made.text, end="")
    else:
        replace(export_file, made.text.encode())
    return exit_codes.FINE


@click.command(short_help="Create an environment from package names, a snapshot or a lock file, and check it.")
@click.argument("name")
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
@click.option("--from", "source", metavar="FILE", help="A snapshot, or a lock file of any supported format.")
@click.option(
    "--policy",
    default="product",
    type=click.Choice(["product", "research"]),
    help="Use exact versions, or also minor updates.",
)
@click.option(
    "--channel", "channels", multiple=True, metavar="URL", show_default="the file's", help="Channel for conda packages."
)
@click.option("--index-url", "indexes", multiple=True, metavar="URL", show_default="uv's", help="Index for wheels.")
@click.option(
    "--find-links", "folders", multiple=True, type=_FOLDER, metavar="FOLDER", help="Also use wheels from this folder."
)
@click.option("--no-index", is_flag=True, help="Use only wheels from --find-links.")
@parameters.as_json()
def create(
    name: str,
    packages: tuple[str, ...],
    source: str | None,
    policy: str,
    channels: tuple[str, ...],
    indexes: tuple[str, ...],
    folders: tuple[Path, ...],
    no_index: bool,
    as_json: bool,
) -> int:
    """Create the environment NAME (a name or a path) completely or not at all, check it, and compare it with FILE or
    the PACKAGEs: names with versions, such as python=3.11 "torch>=2.9" numpy. PACKAGEs are pip projects, or conda
    packages if --channel is given.

    Exit status 1: the environment does not match FILE, or has problems; 3: something was not available, and nothing was
    created.
    """
    from feedline.env.create.creation import create as make
    from feedline.env.create.homes import prefix_of
    from feedline.env.create.named import listing_of_names
    from feedline.env.create.pip_part import From
    from feedline.env.create.plan import plan_of, python_for
    from feedline.env.load import listing_at

    if (source is None) == (not packages):
        raise click.UsageError(
            "pass either --from FILE or packages, such as: feedline env create NAME python=3.11 torch"
        )
    listing = listing_of_names(packages, channels) if source is None else listing_at(source)
    if source is not None and (python := python_for(listing, policy)):
        listing = listing_at(source, python)  # the Python version for which markers are evaluated
    plan = plan_of(listing, policy, channels)
    wheels = From(indexes, tuple(str(folder.absolute()) for folder in folders), no_index)
    with ERR.status("making it") as status:
        made = make(
            plan,
            prefix_of(name),
            wheels=wheels,
            channels=channels,
            step=lambda words: status.update(f"creating the environment: {words}"),
        )
    right = made.verdict.sound and (made.equal or policy == "research")
    if as_json:
        print_json(
            {
                "prefix": str(made.prefix),
                "equal": made.equal,
                "sound": made.verdict.sound,
                "fingerprint": made.snapshot["fingerprint"],
                "differences": [one.text for one in made.differences],
                "findings": [one.code for one in made.verdict.findings],
                "notes": list(made.notes),
                "channels": made.snapshot["channels"],
                "seconds": {name: round(seconds, 3) for name, seconds in made.seconds.items()},
            }
        )
    else:
        _print_created(made, source or "the command line", policy)
    return exit_codes.FINE if right else exit_codes.PROBLEMS_FOUND


def _print_created(made: Created, source: str, policy: str) -> None:
    channels = "".join(f", {escape(one)}" for one in made.snapshot["channels"])
    OUT.print(f"[bold]{escape(str(made.prefix))}[/] {counted(len(made.snapshot['packages']), 'package')}{channels}")
    OUT.print("[dim]" + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in made.seconds.items()) + "[/]")
    for note in made.notes:
        OUT.print(f"[yellow]note[/] {escape(note)}")
    for finding in made.verdict.findings:
        OUT.print(f"{finding.severity} [bold]{finding.code}[/] {escape(finding.text)}")
    if made.equal:
        OUT.print(f"[green]the environment matches {escape(source)}[/], fingerprint {made.snapshot['fingerprint']}")
    else:
        words = "with minor updates" if policy == "research" else "the environment does not match the file"
        OUT.print(f"{words}: {escape('; '.join(one.text for one in made.differences) or 'another fingerprint')}")
    OUT.print(f"source {escape(str(made.prefix))}/bin/activate" if (made.prefix / "bin/activate").exists() else "")


@click.command("list", short_help="List environments with size, age and last use.")
@click.argument("folders", nargs=-1, type=_FOLDER)
@_stale_days
@parameters.as_json()
def list_(folders: tuple[Path, ...], stale_days: int, as_json: bool) -> int:
    """List the environments made by `create`, conda's environments, and those in FOLDERS, such as projects with a
    .venv; then the package caches of pip, uv and conda.
    """
    from feedline.env.create.caches import caches
    from feedline.env.create.homes import homes, is_stale

    found, cached = homes(folders), caches()
    stale = {home.place.prefix for home in found if is_stale(home, stale_days, time.time())}
    if as_json:
        print_json(
            {
                "environments": [{**_as_dict(home), "stale": home.place.prefix in stale} for home in found],
                "caches": [{"tool": one.tool, "folder": str(one.folder), "bytes": one.bytes} for one in cached],
            }
        )
        return exit_codes.FINE
    if found:
        rows = [
            (
                escape(str(home.place.prefix)),
                f"{home.place.kind} {home.place.python or ''}",
                bytes_text(home.bytes),
                _ago(home.made),
                "now" if home.pids else _ago(home.used),
                "stale" if home.place.prefix in stale else "",
                "" if home.by_rule else "no",
            )
            for home in found
        ]
        table(("environment", "Python", "size", "made", "used", "", "named by rule"), rows)
    OUT.print(f"{counted(len(found), 'environment')}, {bytes_text(sum(home.bytes for home in found))}")
    if stale:
        OUT.print(f"{len(stale)} not used for {stale_days} days: feedline env clean --stale removes them")
    for one in cached:
        OUT.print(f"package cache of {one.tool}: {escape(str(one.folder))}, {bytes_text(one.bytes)}")
    if cached:
        OUT.print("feedline env clean --caches empties them")
    return exit_codes.FINE


@click.command(short_help="Remove environments and package caches after listing them.")
@click.argument("names", nargs=-1)
@click.option("--stale", is_flag=True, help="Also remove the listed environments that were not used for --stale-days.")
@click.option("--caches", "with_caches", is_flag=True, help="Also empty the package caches of pip, uv and conda.")
@_stale_days
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def clean(names: tuple[str, ...], stale: bool, with_caches: bool, stale_days: int, yes: bool) -> int:
    """Show the sizes of the environments NAMES (names or paths), and remove them. Environments in use by a process are
    not removed.

    Exit status 1: you declined, and nothing was removed.
    """
    from feedline.env.create.caches import caches, empty
    from feedline.env.create.homes import home_at, homes, is_stale, prefix_of, remove
    from feedline.env.reading.place import is_conda_base

    if not (names or stale or with_caches):
        raise click.UsageError("name an environment, or pass --stale or --caches")
    found = [home_at(prefix_of(name)) for name in names]
    named = {home.place.prefix.resolve() for home in found}
    if stale:
        old = [home for home in homes() if is_stale(home, stale_days, time.time())]
        found += [
            home for home in old if home.place.prefix.resolve() not in named and not is_conda_base(home.place.prefix)
        ]
    cached = caches() if with_caches else []
    if not found and not cached:
        OUT.print("nothing to remove")
        return exit_codes.FINE
    for home in found:
        OUT.print(
            f"{escape(str(home.place.prefix))}: {bytes_text(home.bytes)}, made {_ago(home.made)}, used "
            f"{_ago(home.used)}"
        )
    for one in cached:
        OUT.print(f"package cache of {one.tool}: {escape(str(one.folder))}, {bytes_text(one.bytes)}")
    if not yes and not click.confirm("Remove them?"):
        return exit_codes.PROBLEMS_FOUND
    for home in found:
        remove(home)
    for one in cached:
        empty(one)
    if found:
        OUT.print(f"{counted(len(found), 'environment')} removed, {bytes_text(sum(home.bytes for home in found))}")
    if cached:
        OUT.print(f"{counted(len(cached), 'cache')} emptied, {bytes_text(sum(one.bytes for one in cached))}")
    return exit_codes.FINE


def _as_dict(home: Home) -> dict[str, object]:
    return {
        "prefix": str(home.place.prefix),
        "name": home.place.name,
        "kind": home.place.kind,
        "python": home.place.python,
        "bytes": home.bytes,
        "made": _when(home.made),
        "used": None if home.used is None else _when(home.used),
        "pids": list(home.pids),
        "by_rule": home.by_rule,
    }


def _when(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds")


def _ago(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    days = int((time.time() - seconds) // _DAY_S)
    return "today" if days < 1 else f"{counted(days, 'day')} ago"
