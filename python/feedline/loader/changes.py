# SPDX-License-Identifier: Apache-2.0
"""Logs how a loader with ``num_workers="auto"`` changes its numbers of threads and prefetched batches."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .. import _engine

_QUIET_S = 10  # minimum interval between lines at INFO; others are logged at DEBUG


class Log:
    """Logs each change in a loader's numbers of threads and prefetched batches once, if logging is configured. Used by
    one thread at a time.
    """

    def __init__(self) -> None:
        self.seen = 0  # number of changes, as counted by `_engine.Loader.changes`
        self._told_s = -float(_QUIET_S)

    def write(self, engine: _engine.Loader) -> None:
        """Writes the changes since the last call to the logger ``feedline``."""
        controller = engine.stats()["controller"]
        news = controller["changed"] - self.seen
        self.seen = controller["changed"]
        if "logging" not in sys.modules:
            return
        import logging  # another thread may be importing it

        for change in controller["changes"][-news:]:
            now_s = time.monotonic()
            is_due = now_s - self._told_s >= _QUIET_S
            self._told_s = now_s if is_due else self._told_s
            text = "%.1f s: %d of %d threads, %d batches ahead (%s)"
            values = (change["at_s"], change["to"], controller["limit"], change["ahead_to"], change["why"])
            logging.getLogger("feedline").log(logging.INFO if is_due else logging.DEBUG, text, *values)
