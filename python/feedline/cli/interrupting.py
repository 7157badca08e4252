# SPDX-License-Identifier: Apache-2.0
"""Handles Ctrl-C on the command line: the first Ctrl-C ends the command, and further ones within a few seconds are
ignored.
"""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType

_PATIENCE_S = 10.0  # well above the time that a subcommand needs to clean up


def first_alone() -> None:
    """Makes the first Ctrl-C raise KeyboardInterrupt, and ignores further ones for a few seconds.

    A second signal would interrupt the clean-up: it could leave a temporary folder or a running copy of a script, or
    print a traceback instead of returning the exit status. If a subcommand hangs, Ctrl-C raises KeyboardInterrupt again
    after this time. A process that was started with SIGINT ignored (``nohup``, ``&`` in a script) still ignores Ctrl-C.
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
