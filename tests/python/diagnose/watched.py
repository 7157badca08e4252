# SPDX-License-Identifier: Apache-2.0
"""Runs a script under ``feedline diagnose``."""

import json
import os
import subprocess
import sys
import textwrap

from feedline.profiler import session

FEEDLINE = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]


def watched(folder, source, *options, environment=None, **popen):
    """Returns (exit status, standard output, standard error, diagnosis or None)."""
    script, output = folder / "train.py", folder / "diagnosis.json"
    script.write_text(textwrap.dedent(source))
    command = [*FEEDLINE, "diagnose", "--output", str(output), *options, "--", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})}, **popen)
    found = json.loads(output.read_text()) if output.exists() else None
    return done.returncode, done.stdout, done.stderr, found


def recorded(folder, source):
    """Returns what the probe and the sampler recorded for a script that ended without errors, without experiments."""
    script = folder / "train.py"
    script.write_text(textwrap.dedent(source))
    recording = session.run([sys.executable, "-W", "ignore", str(script)])
    assert recording.returncode == 0
    return recording


def sampled(run, *steps):
    """Returns what `run(number of steps)` returns, whose last item is a diagnosis: with more steps if a busy machine
    took too few samples during the loop.
    """
    for number in steps:
        *others, found = run(number)
        if not any("the loop was too short" in why for why in found["summary"]["missing"].values()):
            break
    return *others, found


LARGER_BUDGET = "120s"  # seconds of experiments on a busy machine, which rarely uses all of them


def with_experiments(folder, source, budget, enough, **others):
    """Like `watched`, but with a larger budget if the findings within `budget` are not `enough`."""
    for seconds in (budget, LARGER_BUDGET):
        seen = watched(folder, source, "--budget", seconds, **others)
        if enough(seen[3]):
            break
    return seen


def rungs_of(found):
    """The rungs by their number of workers."""
    return {rung["workers"]: rung for rung in found["experiments"]["rungs"]}
