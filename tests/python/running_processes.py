# SPDX-License-Identifier: Apache-2.0
"""The processes that are running now, for tests that no process is left over, and time limits for waiting for one."""

import threading
import time
from pathlib import Path

HANG_S = 300  # the limit only ends a hang: on a busy machine, everything takes many times as long


def until(condition, what="", seconds=HANG_S):
    """Returns the value of `condition` once it is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"it never came to this: {what or condition}"
        time.sleep(0.005)
    return found


def processes_with(text):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text in (folder / "cmdline").read_bytes().decode(errors="replace"):
                found.append(folder.name)
        except OSError:
            continue
    return found


def end_publishing() -> None:
    """Waits until no loader is published and the publishing thread has ended, including that of a loader that was just
    collected.
    """
    from feedline.serving import publishing

    publishing._end()
    for thread in threading.enumerate():
        if thread.name == "feedline-publish":
            thread.join(HANG_S)
            assert not thread.is_alive()
