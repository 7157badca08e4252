# SPDX-License-Identifier: Apache-2.0
"""``feedline env``: checks, describes, compares and rebuilds environments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.commands.env_making import clean, create, export, list_
from feedline.cli.console import OUT, counted, print_json, table

if TYPE_CHECKING:
    from feedline.env.differences import Difference
    from feedline.env.rules import Verdict

_STYLE = {"error": "bold red", "critical": "bold red", "warning": "yellow", "note": "cyan"}
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group(short_help="Check, snapshot, compare and rebuild environments.")
def env() -> None:
    """Check and describe an environment; see docs/env.md. The environment's files are read, but none of its code is
    imported or run.
    """


def _prefix(command: Any) -> Any:
    return click.option(
        "--prefix",
        type=_FOLDER,
        metavar="FOLDER",
        show_default="the environment that runs feedline",
        help="Folder of the environment, which contains bin/.",
    )(command)


def _pid(command: Any) -> Any:
    help = "Use the libraries mapped by this running process, and its environment variables."
    return click.option("--pid", type=click.IntRange(1), metavar="PID", help=help)(command)


@env.command("check", short_help="Check an environment for problems.")
@_prefix
@_pid
@click.option("--lock", metavar="FILE", help="Also compare with this lock file or snapshot.")
@click.option(
    "--label",
    default="",
    show_default=False,
    metavar="TEXT",
    help='Compare with the label of a container image, such as "torch 2.9 cuda 12.8".',
)
@click.option("--deep", is_flag=True, help="Also compare the hashes of files over 64 MiB, not only their sizes.")
@parameters.as_json()
def check(prefix: Path | None, pid: int | None, lock: str | None, label: str, deep: bool, as_json: bool) -> int:
    """Find packages in an environment that overwrite each other, are modified, missing, or not built for the GPU.

    Exit status 1: a finding of severity "error" or "warning".
    """
    from feedline.env.load import listing_at
    from feedline.env.rules import Analysis
    from feedline.env.rules import check as evaluate
    from feedline.env.scan import read_environment

    seen = read_environment(prefix, pid=pid)
    listing = None if lock is None else listing_at(lock, seen.place.python)
    verdict = evaluate(Analysis(seen, listing, label, deep))
    if as_json:
        print_json(_verdict_as_dict(verdict))
    else:
        _print_verdict(verdict)
    return exit_codes.FINE if verdict.sound else exit_codes.PROBLEMS_FOUND


@env.command("snapshot", short_help="Print a description of an environment as JSON.")
@_prefix
@_pid
@click.option("--snapshot-file", type=parameters.OUTPUT_FILE, help="Write to this file instead of standard output.")
def snapshot(prefix: Path | None, pid: int | None, snapshot_file: Path | None) -> int:
    """Print one JSON object with interpreter, packages with origin and hash, channels, driver, libraries, and
    variables.

    Environments with the same fingerprint have the same interpreter and the same packages, file by file.
    """
    from feedline.env.scan import read_environment
    from feedline.env.snapshot import snapshot_of
    from feedline.record import replace

    value = snapshot_of(read_environment(prefix, pid=pid))
    if snapshot_file is None:
        print_json(value)
        return exit_codes.FINE
    replace(snapshot_file, (json.dumps(value, indent=2) + "\n").encode())
    OUT.print(f"{snapshot_file}: {counted(len(value['packages']), 'package')}, fingerprint {value['fingerprint']}")
    return exit_codes.FINE


@env.command("diff", short_help="Show how two environments, snapshots or locks differ.")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@parameters.as_json()
def diff(first: str, second: str, as_json: bool) -> int:
    """Show how A and B differ: each is the folder of an environment, a snapshot, or a lock file of any supported
    format.

    Exit status 1: A and B differ.
    """
    from feedline.env.differences import compare, exact_python
    from feedline.env.load import listing_at

    one, other = listing_at(first), listing_at(second)
    if python := exact_python(one, other):  # the Python version for which markers are evaluated
        one, other = listing_at(first, python), listing_at(second, python)
    found = compare(one, other)
    if as_json:
        print_json({"a": first, "b": second, "equal": not found, "differences": [_as_dict(each) for each in found]})
    elif found:
        table(("what", "differs in", first, second), [_row(each) for each in found])
    else:
        OUT.print("[green]no differences[/]" + _by(one.kind, other.kind))
    return exit_codes.PROBLEMS_FOUND if found else exit_codes.FINE


for _subcommand in (export, create, list_, clean):
    env.add_command(_subcommand)


def _by(*kinds: str) -> str:
    locks = [kind for kind in kinds if kind != "snapshot"]
    return f" in all that {locks[0]} lists" if locks else ", file by file"


def _row(each: Difference) -> tuple[str, str, str, str]:
    return each.name, each.what, _short(each.first), _short(each.second)


def _short(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    return escape(text if len(text) <= 40 else text[:37] + "...")


def _as_dict(each: Difference) -> dict[str, Any]:
    return {"kind": each.kind, "name": each.name, "what": each.what, "a": each.first, "b": each.second}


def _verdict_as_dict(verdict: Verdict) -> dict[str, Any]:
    return {
        "prefix": verdict.prefix,
        "sound": verdict.sound,
        "facts": dict(verdict.facts),
        "findings": [
            {"code": one.code, "severity": one.severity, "evidence": list(one.evidence), "fix": one.fix, **one.about}
            for one in verdict.findings
        ],
        "abstained": [{"code": one.code, "missing": one.missing} for one in verdict.abstained],
    }


def _print_verdict(verdict: Verdict) -> None:
    facts = verdict.facts
    OUT.print(f"[bold]{escape(verdict.prefix)}[/]")
    conda = f"{counted(facts['conda_packages'], 'conda package')}, " if facts["conda_packages"] else ""
    python = f"Python {facts['python']}" if facts["python"] else "no Python"
    by_pip = counted(facts["pip_packages"], "package")
    OUT.print(f"{facts['kind']}, {python}, {conda}{by_pip} installed by pip or a similar tool")
    if facts["channels"]:
        OUT.print("channels: " + escape(", ".join(f"{name} ({count})" for name, count in facts["channels"].items())))
    if facts["torch"]:
        built = f"CUDA {facts['torch_cuda']}" if facts["torch_cuda"] else "no CUDA"
        gpus = f"{len(facts['gpus'])} x {facts['gpus'][0]}, driver {facts['driver']}" if facts["gpus"] else "no GPU"
        OUT.print(f"torch {facts['torch']}, built with {built}; {escape(gpus)}")
    large = f", {counted(facts['compared_by_size'], 'large one')} only by size" if facts["compared_by_size"] else ""
    OUT.print(f"{counted(facts['files'], 'file')} compared with their packages{large}")
    for one in facts["libraries"]:
        OUT.print(f"  [dim]mapped: {escape(one)}[/]")
    for finding in verdict.findings:
        style = _STYLE.get(finding.severity, "")
        OUT.print(f"[{style}]{finding.severity}[/] [bold]{finding.code}[/] {escape(finding.text)}")
        if finding.fix:
            OUT.print(f"  [dim]{escape(finding.fix)}[/]")
    for one in verdict.abstained:
        OUT.print(f"[dim]{one.code}: not judged, because {escape(one.missing)}[/]")
    if not verdict.findings:
        OUT.print("[green]no problems found[/]")
