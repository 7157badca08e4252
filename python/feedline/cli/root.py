# SPDX-License-Identifier: Apache-2.0
"""The root command, which lists the subcommands and maps their exceptions to exit statuses."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

import feedline
from feedline.cli import exit_codes

# Help text of each subcommand. A subcommand's module, which has the subcommand's name, is imported only when needed.
_SUBCOMMANDS = {
    "demo": "Try Feedline in a minute, on generated photos or your own.",
    "inspect": "Show the contents of a source, and the files that a reader would drop.",
    "bench": "Measure how fast a source loads, and where the time goes.",
    "pack": "Rewrite a dataset as shards.",
    "tokenize": "Write texts or chats as token files for Megatron.",
    "merge-index": "Merge shard ranges packed by several workers.",
    "index": "Write a folder listing for HTTP, JPEG checkpoints, or another program's index.",
    "verify": "Check that a dataset is complete and undamaged.",
    "stage": "Copy a dataset to a local folder.",
    "cache": "List, verify, prune or clear a cache of remote objects.",
    "trace": "Show where the time of training steps goes, from a torch.profiler trace.",
    "doctor": "Find a run's problems before it starts.",
    "diagnose": "Show where a training script's time goes, and why.",
    "tune": "Measure settings of a loader, and save those that help.",
    "top": "Monitor the loaders of a running process.",
    "env": "Check, snapshot, compare and rebuild environments.",
    "report": "Render a run record as one HTML page.",
    "diff": "Show how two run records differ, and why.",
    "compare": "Fail if a run is slower than a baseline.",
    "explain": "Explain a finding and its fix.",
}


class _Commands(Mapping[str, click.Command]):
    """The subcommands by name, imported on access."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in _SUBCOMMANDS:
            raise KeyError(name)
        module = name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"feedline.cli.commands.{module}"), module)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_SUBCOMMANDS)

    def __len__(self) -> int:
        return len(_SUBCOMMANDS)


class _Root(click.Group):
    """A command group that prints its help without importing subcommands."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.commands = _Commands()  # type: ignore[assignment]  # read-only

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUBCOMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_SUBCOMMANDS.items()))


def _show_version(context: click.Context, option: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        click.echo(f"feedline, version {feedline.__version__}")
        context.exit()


_NO_THREAD = "can't start new thread"  # of CPython


@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def root() -> None:
    """Feedline keeps a GPU fed: inspect datasets, measure how fast they load, find out why a script waits, and tune its
    loader.
    """


def run(arguments: list[str]) -> int:
    """Runs the command line; returns the exit status."""
    try:
        status = root.main(arguments, prog_name="feedline", standalone_mode=False)
        return status if isinstance(status, int) else exit_codes.FINE
    except click.exceptions.Abort:
        return exit_codes.INTERRUPTED
    except click.ClickException as error:
        error.show()
        if "unexpected extra argument" in error.message and _differ_in_a_number(arguments):
            click.echo(
                "The shell expands braces and wildcards, so quote a source, as in 'shards/{000..146}.tar'.", err=True
            )
        return exit_codes.USAGE
    except KeyboardInterrupt:
        click.echo("feedline: interrupted", err=True)
        return exit_codes.INTERRUPTED
    except BrokenPipeError:  # the reader of our output has exited
        return exit_codes.FINE
    except (feedline.Error, OSError) as error:
        _show(error)
        return exit_codes.of(error)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and _NO_THREAD not in str(error):
            raise
        what = "memory" if isinstance(error, MemoryError) else "memory or threads"
        click.echo(f"feedline: not enough {what}: raise the limits (ulimit -v, ulimit -u, the container's)", err=True)
        return exit_codes.FAILED


def _differ_in_a_number(arguments: list[str]) -> bool:
    of_shards = {argument for argument in arguments if re.search(r"\d", argument)}
    return len({re.sub(r"\d+", "0", argument) for argument in of_shards}) < len(of_shards)


def _show(error: BaseException) -> None:
    from rich.markup import escape

    from feedline.cli.console import ERR  # imports only subcommands' errors need

    ERR.print(f"[bold red]feedline:[/] {escape(_words(error))}")


def _words(error: BaseException) -> str:
    """Formats an error. Python's file errors start with a number and end with the file name; the file name is moved to
    the end.
    """
    if not isinstance(error, OSError) or isinstance(error, feedline.Error) or not error.filename:
        return str(error)
    what = "no such file" if isinstance(error, FileNotFoundError) else error.strerror or type(error).__name__
    return f"{what}: {error.filename}"
