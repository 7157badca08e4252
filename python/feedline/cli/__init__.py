# SPDX-License-Identifier: Apache-2.0
"""The ``feedline`` command."""

from __future__ import annotations

import importlib.util
import signal
import sys

from feedline.cli import exit_codes
from feedline.cli.interrupting import first_alone

__all__ = ["main"]

_OF_RECORDS = "fastjsonschema"


def main() -> int:
    """Entry point of the ``feedline`` command; returns the exit status."""
    first_alone()
    try:
        from feedline.cli.root import run

        if importlib.util.find_spec(_OF_RECORDS) is None:  # which a verb would find out after it has measured
            raise ModuleNotFoundError(name=_OF_RECORDS)
        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = exit_codes.INTERRUPTED
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("click", "rich", _OF_RECORDS):
            raise
        print(
            f'feedline: the command line needs {missing}; run: pip install "feedline[cli]"',
            file=sys.stderr,
        )
        return 2
    if status == exit_codes.INTERRUPTED:  # of another Ctrl-C, at the very end, Python would make a traceback
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status
