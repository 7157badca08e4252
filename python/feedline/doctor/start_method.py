# SPDX-License-Identifier: Apache-2.0
"""The start method of a script's workers: the method that the script requests, or Python's default."""

from __future__ import annotations

from .rules import Analysis

_FORKSERVER_FROM = (3, 14)  # version from which this is Python's default on Linux


def method_of(analysis: Analysis) -> str:
    """Returns fork, spawn or forkserver. Assumes that the script runs under the current Python."""
    request = analysis.script.start_method if analysis.script is not None else None
    return request or ("forkserver" if analysis.machine.python >= _FORKSERVER_FROM else "fork")
