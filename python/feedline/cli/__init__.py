# SPDX-License-Identifier: Apache-2.0
"""The ``feedline`` command."""

from __future__ import annotations

import importlib.util
import io
import signal
import sys

from feedline.cli import exit_codes
from feedline.cli.interrupting import first_alone

__all__ = ["main"]

_OF_SUBCOMMANDS = ("rich", "fastjsonschema")  # paths that a subcommand would check only after it has measured


def main() -> int:
    """Entry point of the ``feedline`` command; returns the exit status."""
    if importlib.util.find_spec("feedline._engine") is None:
        from feedline.no_engine import advice

        print(f"feedline: {advice('the command line')}", file=sys.stderr)
        return 2
    first_alone()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names need not be UTF-8
            stream.reconfigure(errors="backslashreplace")
    try:
        from feedline.cli.root import run

        for name in _OF_SUBCOMMANDS:
            if importlib.util.find_spec(name) is None:
                raise ModuleNotFoundError(name=name)
        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = exit_codes.INTERRUPTED
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("click", *_OF_SUBCOMMANDS):
            raise
        print(
            f"feedline: the command line needs {missing}, which is not installed; run: pip install {missing}",
            file=sys.stderr,
        )
        return 2
    if status == exit_codes.INTERRUPTED:  # another Ctrl-C at the very end would make Python print a traceback
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status
