# SPDX-License-Identifier: Apache-2.0
"""The ``feedline`` command."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> int:
    """Entry point of the ``feedline`` command; returns the exit status."""
    try:
        from feedline.cli.root import run
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        print(
            f'feedline: the command line needs {error.name}; run: pip install "feedline[cli]"',
            file=sys.stderr,
        )
        return 2
    return run(sys.argv[1:])
