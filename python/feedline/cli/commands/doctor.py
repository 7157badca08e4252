# SPDX-License-Identifier: Apache-2.0
"""``feedline doctor``: pre-flight checks of the machine, its limits, the planned loader and the script."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedline.cli import exit_codes, parameters
from feedline.cli.console import ERR, OUT, bytes_text, print_json, wrapped

if TYPE_CHECKING:
    from feedline.doctor.examination import Examination

_COMMAND = "feedline.doctor.command"
_MB = 10**6
_WORDS_BEGIN = 9  # column after a line's name: "machine  Linux"


class _Verb(click.Command):
    """Separates the arguments before ``--`` from those after it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_COMMAND] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@click.command(cls=_Verb, short_help="Find a run's problems before it starts.")
@click.argument("source", required=False, metavar="[SOURCE] [-- python train.py ...]")
@parameters.option(
    "--num-workers",
    aliases=("--workers",),
    type=click.IntRange(0),
    metavar="N",
    show_default="the script's",
    help="Plan with this many workers.",
)
@click.option(
    "--prefetch",
    type=click.IntRange(1),
    metavar="N",
    show_default="the script's",
    help="Plan with this many prefetched batches per worker.",
)
@click.option(
    "--batch-mb",
    type=parameters.FiniteRange(0),
    metavar="MB",
    show_default="from the script's crops",
    help="Plan with batches of this many megabytes.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    metavar="N",
    show_default="the script's",
    help="Plan with this many samples per batch.",
)
@click.option(
    "--dataset-mb",
    type=parameters.FiniteRange(0),
    metavar="MB",
    show_default="0",
    help="Plan with this many megabytes of the dataset copied into each worker.",
)
@click.option(
    "--ranks",
    type=click.IntRange(1),
    metavar="N",
    show_default="the launcher's",
    help="Plan with this many ranks on this machine.",
)
@click.option(
    "--pin/--no-pin", "pinned", default=None, show_default="the script's", help="Plan with page-locked batches."
)
@click.option(
    "--clean",
    is_flag=True,
    help="List files left by killed runs in /dev/shm and /tmp, ask for confirmation, and remove them.",
)
@click.option("--watch", is_flag=True, help="Repeat until Ctrl-C.")
@click.option(
    "--interval",
    default=5.0,
    type=parameters.FiniteRange(0.1, 3600),
    metavar="SECONDS",
    help="With --watch: seconds between checks.",
)
@click.option(
    "--root",
    default="/",
    type=parameters.INPUT_FOLDER,
    metavar="FOLDER",
    help="Examine the machine whose root folder is mounted here.",
)
@parameters.as_json("Print one JSON object; with --watch, one per line.")
@click.pass_context
def doctor(
    context: click.Context,
    source: str | None,
    num_workers: int | None,
    prefetch: int | None,
    batch_mb: float | None,
    batch_size: int | None,
    dataset_mb: float | None,
    ranks: int | None,
    pinned: bool | None,
    clean: bool,
    watch: bool,
    interval: float,
    root: Path,
    as_json: bool,
) -> int:
    """Find a run's problems before it starts, in the machine, its limits, the planned loader, and the script.

    \b
    feedline doctor                                         this machine
    feedline doctor imagenet/train -- python train.py       with a source, and a script that is read but not run
    feedline doctor --num-workers 16 --prefetch 5 --batch-mb 500

    Exit status 1: there are errors or warnings. docs/doctor.md lists the rules; `feedline explain CODE` explains one.
    """
    from feedline.doctor.examination import Request, examine
    from feedline.machine import gpu
    from feedline.machine.system_files import SystemFiles

    request = Request(num_workers, prefetch, _bytes(batch_mb), batch_size, _bytes(dataset_mb), ranks, pinned)
    gpus = gpu.of_engine()

    def look() -> Examination:
        return examine(SystemFiles(root), gpus, os.environ, source, context.meta[_COMMAND], request)

    if clean:
        return _clean(look())
    if watch:
        return _watch(look, interval, as_json)
    return _show(look(), as_json)


def _bytes(megabytes: float | None) -> int | None:
    return None if megabytes is None else int(megabytes * _MB)


def _show(seen: Examination, as_json: bool) -> int:
    from feedline.doctor import screen
    from feedline.doctor.evaluation import has_problems

    if as_json:
        print_json(screen.as_dict(seen))
    else:
        for line in screen.lines(seen):
            for text in wrapped(line.text, OUT.width, _WORDS_BEGIN) if OUT.is_terminal else [line.text]:
                OUT.print(text, style=line.style or None, markup=False)
    return exit_codes.PROBLEMS_FOUND if has_problems(seen.findings) else exit_codes.FINE


def _watch(look: Callable[[], Examination], interval: float, as_json: bool) -> int:
    """Redraws the screen on a terminal; in other outputs, prints a check only if its findings changed."""
    from feedline.doctor import screen

    before = None
    while True:
        seen = look()
        if as_json:
            print(json.dumps(screen.as_dict(seen)), flush=True)
        elif OUT.is_terminal:
            OUT.clear()
            _show(seen, as_json=False)
        elif before != (now := [screen.as_finding(finding) for finding in seen.findings]):
            print(time.strftime("%H:%M:%S"))
            _show(seen, as_json=False)
            before = now
        time.sleep(interval)


def _clean(seen: Examination) -> int:
    from feedline.doctor import leftovers

    found = seen.analysis.leftovers
    if not found:
        OUT.print("no leftover files in /dev/shm and /tmp")
        return exit_codes.FINE
    for one in found:
        OUT.print(f"{bytes_text(one.size):>9}  {one.age_s / 3600:6.1f} h  user {one.owner}  {one.path}", markup=False)
    if seen.analysis.machine.container:
        ERR.print(
            "processes outside this container are not visible: these files may belong to them if /dev/shm is shared"
        )
    if not click.confirm(f"Remove {'them' if len(found) > 1 else 'it'}?", default=False):
        return exit_codes.PROBLEMS_FOUND
    freed, remaining = leftovers.remove(found, os.geteuid())
    OUT.print(f"freed {bytes_text(freed)}")
    for sentence in remaining:
        ERR.print(f"left: {sentence}", markup=False)
    return exit_codes.PROBLEMS_FOUND if remaining else exit_codes.FINE
