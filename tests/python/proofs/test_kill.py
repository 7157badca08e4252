# SPDX-License-Identifier: Apache-2.0
"""A run that is killed repeatedly delivers the same samples, step by step, as an uninterrupted run."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import killed_run

KILLS, LONG_KILLS = 20, 500
HANG_S = 600  # the long form's uninterrupted run takes minutes on a busy machine


def start(data: Path, log: Path, threads: int, environment: dict[str, str], *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, killed_run.__file__, str(data), str(log), "--threads", str(threads), *more]
    return subprocess.Popen(command, env=environment)


def wait_for_growth(log: Path, process: subprocess.Popen[bytes]) -> None:
    """Waits until the run has logged its first own step."""
    size, until = log.stat().st_size if log.exists() else 0, time.monotonic() + HANG_S
    while not log.exists() or log.stat().st_size <= size:
        assert process.poll() is None, "the run ended by itself"
        assert time.monotonic() < until, "the run does not begin"
        time.sleep(0.002)


def run_and_kill(data: Path, log: Path, kills: int, environment: dict[str, str]) -> None:
    """Every run has another number of threads. Every tenth is killed while it starts, the others while they work."""
    moments = random.Random(5)
    for generation in range(kills):
        process = start(data, log, 1 + generation % 4, environment)
        try:
            if generation % 10 == 9:
                time.sleep(moments.uniform(0, 0.3))
            else:
                wait_for_growth(log, process)
                time.sleep(moments.uniform(0, 0.05))
        finally:
            process.kill()
            process.wait()


def test_kills_change_nothing(tmp_path: Path, environment: dict[str, str], long_form: bool) -> None:
    data = killed_run.make_data(tmp_path)
    killed, whole = tmp_path / "killed.log", tmp_path / "whole.log"
    kills = LONG_KILLS if long_form else KILLS
    run_and_kill(data, killed, kills, environment)
    steps = max(line["step"] for line in killed_run.complete_lines(killed)) + killed_run.CHECKPOINT_STEPS
    assert start(data, killed, 3, environment, "--until", str(steps)).wait(HANG_S) == 0
    assert start(data, whole, 2, environment, "--until", str(steps)).wait(HANG_S) == 0
    expected = {line["step"]: line["digest"] for line in killed_run.complete_lines(whole)}
    lines = killed_run.complete_lines(killed)
    assert len(set(expected.values())) == steps, "steps are alike: equal digests would show nothing"
    wrong = [line["step"] for line in lines if line["digest"] != expected[line["step"]]]
    assert not wrong, f"{len(wrong)} of {len(lines)} steps differ from the uninterrupted run, the first is {wrong[0]}"
    assert {line["step"] for line in lines} == set(range(1, steps + 1))
    redone = len(lines) - steps
    assert redone > kills / 4, f"only {redone} steps were done again: the kills hit nothing"
