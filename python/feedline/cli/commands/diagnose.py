# SPDX-License-Identifier: Apache-2.0
"""``feedline diagnose``: shows where a training script's time goes, and why."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
from pathlib import Path

import click

from feedline.cli import exit_codes, parameters
from feedline.cli.console import ERR, wrapped
from feedline.diagnose.steps import steps_of


@click.command(
    context_settings={"allow_interspersed_args": False}, short_help="Show where a training script's time goes, and why."
)
@parameters.as_json("Print one JSON object, which is the run record, after the script has ended.")
@parameters.record_file("--output")
@click.option("--quick", is_flag=True, help="Do not run experiments after the script has ended.")
@click.option(
    "--budget",
    default="60s",
    type=parameters.Duration(),
    help="Time for experiments.",
)
@click.option(
    "--apply", "try_it", is_flag=True, help="Run COMMAND again with the proposed settings, and check the gain."
)
@click.option(
    "--amp",
    is_flag=True,
    help="Run COMMAND three more times, with autocast off, bfloat16 and float16, and compare time and memory.",
)
@parameters.machine
@parameters.gpu_price
@parameters.causes_folders()
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
def diagnose(
    as_json: bool,
    record: Path | None,
    quick: bool,
    budget: float,
    try_it: bool,
    amp: bool,
    machine: bool,
    gpu_price: float | None,
    job_hours: float,
    causes: tuple[Path, ...],
    command: tuple[str, ...],
) -> int:
    """Run COMMAND, watch its data loading, and report where the time goes.

    \b
    feedline diagnose -- python train.py

    The command runs as without Feedline, with the same output and the same exit status. The report goes to standard
    error; --json prints one JSON object to standard output, and --record writes it to a file. With --apply, the command
    runs a second time, with different DataLoader arguments; its output goes to standard error. With --amp, which needs
    a GPU, the command runs again with autocast; compare the losses of these runs yourself.
    """
    from feedline import cost
    from feedline import record as records
    from feedline.diagnose import precision_trial, report, trial, verdict
    from feedline.diagnose.causes import registered
    from feedline.diagnose.watch import watch
    from feedline.profiler.command import CommandError
    from feedline.profiler.summary import timeline

    known, price = registered(causes), cost.price_of(gpu_price, job_hours)
    progress = Progress()
    try:
        recording = watch(command, 0.0 if quick else budget, tell=progress)
    except CommandError as error:
        click.echo(f"feedline: {error.strerror}", err=True)
        return 127 if isinstance(error, FileNotFoundError) or error.errno == 2 else 126
    finally:
        progress.clear()
    summary = timeline.summarise(recording)
    diagnosis = verdict.judge(recording, summary, known)
    is_alive = diagnosis.death is None
    tried = trial.run(command, summary, diagnosis, recording) if try_it and is_alive and summary is not None else None
    precision = precision_trial.run(command, summary, recording) if amp and is_alive else None
    document = report.as_json(recording, summary, diagnosis, tried, price, precision)
    # the machine's facts complete the run record; if they cannot be read, the script's exit status still counts
    with contextlib.suppress(Exception):
        document = records.from_diagnosis(document, steps_of(recording))
        if machine and (as_json or record is not None):
            from feedline.bench.machine import measuring

            disk = {} if summary is None else measuring.of_host(summary.host.__dict__)
            document = measuring.joined(document, measuring.measure(None, known=disk))
    # a closed pipe must not change the exit status
    with contextlib.suppress(OSError):
        _print(report.as_text(recording, summary, diagnosis, tried, price, precision))
    written = record is None or _write(record, json.dumps(document, indent=2) + "\n")
    if as_json:
        with contextlib.suppress(OSError):
            print(json.dumps(document, indent=2), flush=True)
    if recording.returncode == 0 and not written:
        return exit_codes.FAILED
    return _end_like(recording.returncode)


class Progress:
    """Shows the current experiment on a terminal, in a line that is overwritten."""

    def __init__(self) -> None:
        self._shows = sys.stderr is not None and sys.stderr.isatty()
        self._width = 0

    def __call__(self, what: str, left_s: float) -> None:
        self._show(
            f"feedline diagnose: trying {what}, up to {max(left_s, 0):.0f} s left (Ctrl-C stops the experiments)"
        )

    def clear(self) -> None:
        if self._width:
            self._show("")
            self._width = 0

    def _show(self, text: str) -> None:
        if self._shows:
            with contextlib.suppress(OSError):
                print(f"\r{text:<{self._width}}" + ("" if text else "\r"), end="", file=sys.stderr, flush=True)
            self._width = max(self._width, len(text))


def _print(text: str) -> None:
    if ERR.is_terminal:
        text = "\n".join(part for line in text.split("\n") for part in wrapped(line, ERR.width))
    print(text, file=sys.stderr, flush=True)


def _write(path: Path, text: str) -> bool:
    try:
        path.write_text(text)
    except OSError as error:  # the script's exit status takes precedence
        with contextlib.suppress(OSError):
            click.echo(f"feedline: cannot write {path}: {error.strerror}", err=True)
        return False
    return True


def _end_like(returncode: int) -> int:
    """Returns the command's exit status; if a signal killed the command, kills this process with the same signal."""
    if returncode >= 0:
        return returncode
    number = -returncode
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # only the command's own core file is useful
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
