# SPDX-License-Identifier: Apache-2.0
"""``feedline top``: shows loaders, host and GPUs of a running process."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

import click
from rich.console import Console

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, print_json

if TYPE_CHECKING:
    from feedline.top.watch import Watch

_LONGEST_S = 10.0  # for rates, on a machine with many processes or little CPU time


@click.command(short_help="Monitor the loaders of a running process.")
@click.argument("pid", required=False, type=click.IntRange(1))
@click.option(
    "--interval",
    default=1.0,
    type=parameters.FiniteRange(0.1, 60),
    metavar="SECONDS",
    help="Time between updates.",
)
@click.option(
    "--once", is_flag=True, help="Measure one interval, print the result, and exit; implied without a terminal."
)
@parameters.gpu_price_only
@parameters.as_json("Measure one interval, and print one JSON object.")
def top(pid: int | None, interval: float, once: bool, gpu_price: float | None, as_json: bool) -> int:
    """Monitor the loaders of a running process, and the machine.

    PID is a process or the launcher of several, such as torchrun. By default, your newest run with a Feedline loader is
    shown, or else a run that uses torch or a GPU: on a GPU first, then with workers, then the newest.

    The figures need no privileges, unlike those of iotop. nvidia-smi dmon -s pucvmet (letters without commas) shows
    further figures of the GPUs.

    Keys: q quits, p pauses, tab and arrows select a loader. With --once or --json, exit status 1 means that an alarm is
    active. docs/top.md explains each value.
    """
    from feedline import cost
    from feedline.machine import gpu
    from feedline.top import live, watch

    is_live = not once and not as_json and OUT.is_terminal and not OUT.is_dumb_terminal
    # with a single interval, its state counts immediately
    looks = watch.LOOKS if is_live else 1
    price = cost.price_of(gpu_price)
    gpus = gpu.of_engine()
    on_gpu = () if pid is not None else tuple(one for reading in gpus.read() for one in reading.pids)
    chosen = watch.choose(pid, gpu_pids=on_gpu)
    watched = watch.Watch(chosen.process, interval, gpus, looks, price=price, others=chosen.others)
    with contextlib.closing(watched) as watching:
        if is_live:
            return live.run(watching, interval, Console(highlight=False))
        return _print_once(watching, interval, as_json)


def _print_once(watching: Watch, interval: float, as_json: bool) -> int:
    from feedline.top import screen

    try:
        watching.look()
        time.sleep(interval)
        latest_s = time.monotonic() + _LONGEST_S
        seen = watching.look()
        while seen.host.cpus_used is None and not seen.ended and time.monotonic() < latest_s:
            seen = watching.look()  # waits for the second sample, which is late if the first one was expensive
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    try:
        if as_json:
            print_json(seen.as_dict())
        else:
            for line in screen.lines(seen, OUT.width):
                OUT.print(line) if OUT.is_terminal else print(line.plain)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has exited; Python would flush again at exit and report an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    has_alarms = any(alarm.severity == "critical" for alarm in seen.alarms)
    return exit_codes.PROBLEMS_FOUND if has_alarms else exit_codes.FINE
