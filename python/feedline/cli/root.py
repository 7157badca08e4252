# SPDX-License-Identifier: Apache-2.0
"""The root command: lists the verbs, and turns what they raise into an exit status."""

from __future__ import annotations

import click
from rich.markup import escape

import feedline
from feedline.cli import exit_codes
from feedline.cli.bench import bench
from feedline.cli.cache import cache
from feedline.cli.compare import compare
from feedline.cli.console import ERR
from feedline.cli.diagnose import diagnose
from feedline.cli.diff import diff
from feedline.cli.explain import explain
from feedline.cli.index import index
from feedline.cli.inspect import inspect
from feedline.cli.merge_index import merge_index
from feedline.cli.pack import pack
from feedline.cli.report import report
from feedline.cli.stage import stage
from feedline.cli.top import top
from feedline.cli.trace import trace
from feedline.cli.tune import tune
from feedline.cli.verify import verify


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(feedline.__version__, prog_name="feedline")
def root() -> None:
    """Feedline keeps a GPU fed: look into datasets, measure how fast they load, say why a script waits, and tune it."""


root.add_command(inspect)
root.add_command(bench)
root.add_command(pack)
root.add_command(merge_index)
root.add_command(index)
root.add_command(verify)
root.add_command(stage)
root.add_command(cache)
root.add_command(trace)
root.add_command(diagnose)
root.add_command(tune)
root.add_command(top)
root.add_command(report)
root.add_command(diff)
root.add_command(compare)
root.add_command(explain)


def run(arguments: list[str]) -> int:
    """Runs the command line; returns the exit status."""
    try:
        status = root.main(arguments, prog_name="feedline", standalone_mode=False)
        return status if isinstance(status, int) else exit_codes.FINE
    except click.exceptions.Abort:
        return exit_codes.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return exit_codes.USAGE
    except KeyboardInterrupt:
        ERR.print("feedline: interrupted")
        return exit_codes.INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        return exit_codes.FINE
    except (feedline.Error, OSError) as error:
        ERR.print(f"[bold red]feedline:[/] {escape(_words(error))}")
        return exit_codes.of(error)


def _words(error: BaseException) -> str:
    """Python's own errors of files begin with a number, and end with the name."""
    if not isinstance(error, OSError) or isinstance(error, feedline.Error) or not error.filename:
        return str(error)
    what = "no such file" if isinstance(error, FileNotFoundError) else error.strerror or type(error).__name__
    return f"{what}: {error.filename}"
