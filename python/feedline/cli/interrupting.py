# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C on the command line: the first one ends the command; those right after it are ignored."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType

_PATIENCE_S = 10.0  # well above the time that a subcommand needs to clean up


def first_alone() -> None:
    """Makes the first Ctrl-C raise KeyboardInterrupt, and ignores further ones for some seconds.

    A second signal would interrupt the clean-up and leave a folder, a running copy of a script, or a traceback
    instead of the exit status. If a subcommand hangs, a later one raises again. A process that was started with Ctrl-C
    ignored (``nohup``, ``&`` in a script) keeps ignoring it.
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
