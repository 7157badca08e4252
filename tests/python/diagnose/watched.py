# SPDX-License-Identifier: Apache-2.0
"""Runs a script under ``feedline diagnose``."""

import json
import os
import subprocess
import sys
import textwrap

FEEDLINE = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]


def watched(folder, source, *options, environment=None, **popen):
    """(exit status, standard output, standard error, diagnosis or None)."""
    script, output = folder / "train.py", folder / "diagnosis.json"
    script.write_text(textwrap.dedent(source))
    command = [*FEEDLINE, "diagnose", "--output", str(output), *options, "--", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})}, **popen)
    found = json.loads(output.read_text()) if output.exists() else None
    return done.returncode, done.stdout, done.stderr, found
