# SPDX-License-Identifier: Apache-2.0
"""Times an epoch of a loader in this process. Standard library only: the peers' environments import it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from typing import Any

import processes


def print_timed(loader: Iterable[Any], images: int) -> None:
    """Prints the rate, and the CPU time of the process tree, of the second pass over `loader` as JSON."""
    for _ in loader:  # warms up
        pass
    cpu, started = processes.cpu_s(processes.tree(os.getpid())), time.perf_counter()
    for _ in loader:
        pass
    seconds = time.perf_counter() - started
    used = processes.cpu_s(processes.tree(os.getpid())) - cpu
    found = {"images": images, "images_per_s": images / seconds, "cpu_s_per_1000_images": 1000 * used / images}
    print(json.dumps(found))
