# SPDX-License-Identifier: Apache-2.0
"""The ``feedline`` command."""

from __future__ import annotations

import importlib.util
import sys

__all__ = ["main"]

_OF_RECORDS = "fastjsonschema"


def main() -> int:
    """Entry point of the ``feedline`` command; returns the exit status."""
    try:
        from feedline.cli.root import run

        if importlib.util.find_spec(_OF_RECORDS) is None:  # which a verb would find out after it has measured
            raise ModuleNotFoundError(name=_OF_RECORDS)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("click", "rich", _OF_RECORDS):
            raise
        print(
            f'feedline: the command line needs {missing}; run: pip install "feedline[cli]"',
            file=sys.stderr,
        )
        return 2
    return run(sys.argv[1:])
