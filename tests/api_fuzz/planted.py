# SPDX-License-Identifier: Apache-2.0
"""Intentional faults, one for each verdict, chosen by FEEDLINE_API_FUZZ_PLANT. They show that the fuzzer can fail."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import feedline

if TYPE_CHECKING:
    from .case import Case


def plant(case: Case) -> None:
    """Called before the first case of a process."""
    fault = os.environ.get("FEEDLINE_API_FUZZ_PLANT")
    original = feedline.Loader._next
    if fault is None or original.__name__ == "planted":
        return

    def planted(loader: feedline.Loader, run: int) -> Any:
        batch = original(loader, run)
        if loader.epoch == 0 and batch is not None:  # smaller cases have it, too
            if fault == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            elif fault == "hang":
                threading.Event().wait()
            elif fault == "exception":
                raise KeyError("planted")
            elif fault == "rows":
                return original(loader, run) or batch  # a batch is lost
        return batch

    feedline.Loader._next = planted  # type: ignore[method-assign]
