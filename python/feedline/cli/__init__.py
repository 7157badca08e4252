# SPDX-License-Identifier: Apache-2.0
"""The ``feedline`` command."""

from __future__ import annotations

import signal
import sys

from feedline.cli import exit_codes

__all__ = ["main"]


def main() -> int:
    """Entry point of the ``feedline`` command; returns the exit status."""
    try:
        from feedline.cli.root import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = exit_codes.INTERRUPTED
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        print(
            f'feedline: the command line needs {error.name}; run: pip install "feedline[cli]"',
            file=sys.stderr,
        )
        return 2
    if (
        status == exit_codes.INTERRUPTED
    ):  # nothing is left to do but to end, of which another Ctrl-C would make a traceback
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status
