# SPDX-License-Identifier: Apache-2.0
"""``feedline diagnose``: where a training script's time goes, and why."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
from pathlib import Path

import click


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object after the script has ended.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the JSON object to this file.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def diagnose(as_json: bool, output: Path | None, command: tuple[str, ...]) -> int:
    """Run COMMAND, watch its data loading, and say where the time goes: feedline diagnose -- python train.py

    The command runs as without Feedline: same output, same exit status. The text goes to standard error; with --json
    one JSON object follows on standard output, with --output it goes to a file.
    """
    from feedline.diagnose import report, session, timeline, verdict

    try:
        recording = session.run(command)
    except session.CommandError as error:
        click.echo(f"feedline: {error.strerror}", err=True)
        return 127 if isinstance(error, FileNotFoundError) or error.errno == 2 else 126
    summary = timeline.summarise(recording)
    diagnosis = verdict.judge(summary)
    document = report.as_json(recording, summary, diagnosis, None)
    # a closed pipe must not change the exit status
    with contextlib.suppress(OSError):
        print(report.as_text(recording, summary, diagnosis, None), file=sys.stderr, flush=True)
    if output is not None:
        _write(output, json.dumps(document, indent=2) + "\n")
    if as_json:
        with contextlib.suppress(OSError):
            print(json.dumps(document, indent=2), flush=True)
    return _end_like(recording.returncode)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:  # the script's exit status still counts for more
        with contextlib.suppress(OSError):
            click.echo(f"feedline: cannot write {path}: {error.strerror}", err=True)


def _end_like(returncode: int) -> int:
    """The command's exit status; if a signal ended it, the same signal ends this process."""
    if returncode >= 0:
        return returncode
    number = -returncode
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command's own core file is the one that tells something
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
