# SPDX-License-Identifier: Apache-2.0
"""Which processes run now, for tests of what leaves none behind, and how long tests wait for one."""

import threading
import time
from pathlib import Path

HANG_S = 300  # a limit only ends a hang: on a machine that others keep busy everything takes many times as long


def until(condition, what="", seconds=HANG_S):
    """What `condition` gives once it is true."""
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
    """No loader is published, and the thread that did is gone, also the one of a loader that was collected just now."""
    from feedline.serving import publishing

    publishing._end()
    for thread in threading.enumerate():
        if thread.name == "feedline-publish":
            thread.join(HANG_S)
            assert not thread.is_alive()
