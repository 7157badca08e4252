# SPDX-License-Identifier: Apache-2.0
"""``feedline tune``: compares settings of a loader, and saves those that help."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import ERR, OUT, print_json, progress, table
from feedline.cli.outputs import distinct
from feedline.tune.settings import Options

if TYPE_CHECKING:
    from feedline.tune.script import Tuned
    from feedline.tune.source import TunedSource

_COMMAND = "feedline.tune.command"
_LEAST_BUDGET_S = 1.0
_LADDER_BUDGET_S = 900.0
_FOR = {"torch": "", "feedline": ', for_="feedline.DataLoader"', "source": ', for_="loader"'}  # the loader that won


class _Verb(click.Command):
    """Records whether ``--`` was passed: the words after it are a command, even if there is only one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_COMMAND] = "--" in args
        return super().parse_args(ctx, args)


@click.command(cls=_Verb, short_help="Measure settings of a loader, and save those that help.")
@click.argument("what", nargs=-1, required=True, metavar="SOURCE | -- COMMAND...")
@click.option(
    "--budget",
    default="60s",
    type=parameters.Duration(_LEAST_BUDGET_S),
    help="Time for measuring.",
)
@click.option(
    "--cpus",
    type=click.IntRange(1),
    metavar="N",
    show_default="all usable ones",
    help="Limit the loader to this many CPUs.",
)
@click.option(
    "--memory",
    type=parameters.ByteSize(),
    show_default="a quarter of the free memory",
    help="Limit on the memory for prefetched batches, such as 2GiB.",
)
@click.option(
    "--batch-size-range", type=parameters.BatchSizes(), metavar="LOW:HIGH", help="Also try batch sizes in this range."
)
@click.option("--batch-size", default=64, type=click.IntRange(1), metavar="N", help="With a SOURCE: samples per batch.")
@click.option(
    "--size",
    default=224,
    type=click.IntRange(1),
    metavar="N",
    help="With a SOURCE: height and width of the crops in pixels.",
)
@click.option(
    "--ladder",
    is_flag=True,
    help="With a COMMAND: start it again for each measurement, so that it may use the GPU. Without --budget, this "
    "takes up to 15 minutes.",
)
@click.option(
    "--keep-running",
    is_flag=True,
    help="Let COMMAND continue with its own settings after its loader has been measured.",
)
@parameters.option(
    "--settings",
    aliases=("--output",),
    type=parameters.OUTPUT_FILE,
    help="Save the settings to this file, if they were shown to help.",
)
@parameters.record_file()
@parameters.as_json()
@click.pass_context
def tune(
    context: click.Context,
    what: tuple[str, ...],
    budget: float,
    cpus: int | None,
    memory: int | None,
    batch_size_range: tuple[int, int] | None,
    batch_size: int,
    size: int,
    ladder: bool,
    keep_running: bool,
    settings: Path | None,
    record: Path | None,
    as_json: bool,
) -> int:
    """Compare settings of a loader, and save those that help.

    \b
    feedline tune imagenet/train                Feedline's own loader over a source
    feedline tune -- python train.py            the DataLoader of a script, with its code unchanged
    feedline tune --ladder -- python train.py   the same on the GPU, rung by rung

    The script is watched for a few seconds of its first loop and then paused while a copy of its process tries other
    settings of its loader; then the script is terminated. `DataLoader(**feedline.load_settings(FILE))` uses the
    settings saved by --settings.
    """
    is_command = context.meta[_COMMAND]
    _check_call(context, what, is_command)
    distinct({"SOURCE": None if is_command else what[0], "--settings": settings, "--record": record})
    began = time.time()
    if ladder and context.get_parameter_source("budget") is click.core.ParameterSource.DEFAULT:
        budget = _LADDER_BUDGET_S
    options = Options(budget, cpus, memory, batch_size_range, keep_running, ladder)
    with _showing() as (tell, say):
        if is_command:
            tuned: Tuned | TunedSource | int = _tune_script(what, options, tell, say)
        else:
            tuned = _tune_source(what[0], batch_size, size, options, tell, say)
    if isinstance(tuned, int):
        return tuned
    return _give(tuned, settings, record, as_json, began)


def _check_call(context: click.Context, what: tuple[str, ...], is_command: bool) -> None:
    """Raises usage errors for invalid combinations of options."""
    given = {
        name: context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE for name in context.params
    }
    if given["ladder"] and given["keep_running"]:
        raise click.UsageError("--keep-running cannot be combined with --ladder, which ends the command many times")
    if is_command:
        if given["batch_size"] or given["size"]:
            name = "--batch-size" if given["batch_size"] else "--size"
            raise click.UsageError(
                f"{name} requires a SOURCE; a command sets its own value; to vary it, pass --batch-size-range"
            )
        if what[0].startswith("-"):
            raise click.UsageError(f"{what[0]} is at the start of the command; put options of feedline tune before --")
        return
    if len(what) > 1 or what[0].endswith(".py") or (not Path(what[0]).exists() and shutil.which(what[0])):
        command = " ".join(what if len(what) > 1 or not what[0].endswith(".py") else ("python", *what))
        raise click.UsageError(
            f"{what[0]} is not a source; if it is a command, put -- before it: feedline tune -- {command}"
        )
    for name in ("keep_running", "ladder"):
        if given[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} requires a command")


def _tune_script(command: tuple[str, ...], options: Options, tell: Any, say: Any) -> Tuned | int:
    from feedline.profiler.command import CommandError
    from feedline.tune import ladder, script

    try:
        if options.ladder:
            return ladder.tune(command, options, tell, say, _announce)
        return script.tune(command, options, tell, say)
    except CommandError as error:
        click.echo(f"feedline: {error.strerror}", err=True)
        return 127 if isinstance(error, FileNotFoundError) or error.errno == 2 else 126


def _tune_source(name: str, batch_size: int, size: int, options: Options, tell: Any, say: Any) -> TunedSource:
    import feedline
    from feedline.tune import source

    dataset = (
        feedline.open(name)
        .random_resized_crop(size)
        .random_horizontal_flip()
        .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    )
    return source.tune(dataset, name, batch_size, options, tell, say)


def _announce(candidate: Any, expected: Any) -> None:
    """Prints what a rung is expected to gain, before it is measured."""
    text = "unknown" if expected is None else f"{expected}: {expected.why}"
    ERR.print(f"next: {escape(candidate.change)}; expected {escape(text)}")


@contextlib.contextmanager
def _showing() -> Iterator[tuple[Callable[[Any], None], Callable[[str], None]]]:
    """Shows the current measurement on standard error if it is a terminal, to which the script may also print."""
    with progress(None, "tuning") as bar:

        def say(phase: str) -> None:
            bar.update(bar.task_ids[0], description=phase)

        def tell(rung: Any) -> None:
            bar.update(bar.task_ids[0], advance=1, description=f"measuring; {rung.candidate.change}: {rung.why}")

        yield tell, say


def _give(tuned: Tuned | TunedSource, settings: Path | None, record: Path | None, as_json: bool, began: float) -> int:
    from feedline import record as records
    from feedline.tune import report

    document = report.as_json(tuned)
    if as_json:
        print_json(document)
    elif document["refused"] is None:
        _print(tuned, report)
    else:
        ERR.print(f"feedline: {escape(document['refused'])}")
    if record is not None:
        facts = report.record_of(tuned, ["feedline", *sys.argv[1:]], began, time.time() - began)
        records.write(facts, record)
    if document["refused"] is not None:
        for note in tuned.notes:
            ERR.print(f"feedline: {escape(note)}")
        return exit_codes.FAILED
    if settings is not None:
        _save(document, settings, as_json)
    returncode = getattr(tuned, "returncode", None)
    return exit_codes.FINE if returncode is None or returncode == 0 else abs(returncode) + 128 * (returncode < 0)


def _save(document: dict[str, Any], path: Path, as_json: bool) -> None:
    from feedline.loader import tuned_settings as settings

    show = ERR if as_json else OUT  # standard output is one JSON object
    if document["settings"] is not None:
        settings.write(document["settings"], path)
        taken = f'**feedline.load_settings("{path}"{_FOR[document["best"]["loader"]]})'
        show.print(f"saved: use it as {escape(taken)}")
        return
    left = f"; {path} was written by an earlier run and was not changed" if path.exists() else ""
    show.print(f"nothing was saved, as no settings were shown to help{escape(left)}")


def _print(tuned: Tuned | TunedSource, report: Any) -> None:
    assert tuned.result is not None
    summary = tuned.summary
    table(report.columns(tuned), [tuple(map(escape, report.row(tuned, rung))) for rung in tuned.result.rungs])
    if summary is not None and summary.loop.steps:
        OUT.print(f"the loop's own work: {summary.loop.step_ms:.1f} ms per batch; rates are in batches per second")
    for note in tuned.notes:
        OUT.print(f"note: {escape(note)}")
    document = report.as_json(tuned)
    OUT.print(f"[bold]{escape(document['conclusion'])}[/]")
    best, base = document["best"]["loader"], document["base"]["loader"]
    if document["outcome"] == "gain" and best == "feedline" and base == "torch":
        OUT.print("import Feedline's loader: from feedline import DataLoader")
