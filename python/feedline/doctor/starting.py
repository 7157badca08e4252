# SPDX-License-Identifier: Apache-2.0
"""How workers of a script start: as it asks for, or as its Python does by itself."""

from __future__ import annotations

from .case import Case

_FORKSERVER_FROM = (3, 14)  # Python's choice on Linux from here on


def method_of(case: Case) -> str:
    """fork, spawn or forkserver. The script is taken to run under the Python that runs this."""
    asked = case.script.start_method if case.script is not None else None
    return asked or ("forkserver" if case.machine.python >= _FORKSERVER_FROM else "fork")
