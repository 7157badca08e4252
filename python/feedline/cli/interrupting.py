# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in the command line: one is an order to end, those right after it are impatience."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType

_PATIENCE_S = 10.0  # what a verb clears up is bounded well below it


def first_alone() -> None:
    """From here on the first Ctrl-C raises KeyboardInterrupt, and none does in the next seconds.

    A second one would cut short whatever the first one set off: a folder left behind, a copy of a script still at work,
    a traceback in place of the exit status. Should a verb hang even so, a later one raises again. A process that was
    started without Ctrl-C (``nohup``, ``&`` in a script) keeps ignoring it.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    raised_at = float("-inf")

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal raised_at
        now = time.monotonic()
        if now - raised_at >= _PATIENCE_S:
            raised_at = now
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
