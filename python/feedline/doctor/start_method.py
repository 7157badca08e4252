# SPDX-License-Identifier: Apache-2.0
"""The start method of a script's workers: the one it requests, or its Python's default."""

from __future__ import annotations

from .rules import Case

_FORKSERVER_FROM = (3, 14)  # version from which this is Python's default on Linux


def method_of(case: Case) -> str:
    """Returns fork, spawn or forkserver. Assumes that the script runs under the current Python."""
    asked = case.script.start_method if case.script is not None else None
    return asked or ("forkserver" if case.machine.python >= _FORKSERVER_FROM else "fork")
