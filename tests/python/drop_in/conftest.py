# SPDX-License-Identifier: Apache-2.0
"""Every test ends without a child process and without a file in /dev/shm."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # behind those of the folder above, which has a conftest too
pytest.importorskip("torch", reason="the drop-in is torch's DataLoader")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The drop-in is not finished, and some of its tests go by the clock: they run where FEEDLINE_DROP_IN is set."""
    if os.environ.get("FEEDLINE_DROP_IN"):
        return
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(
                pytest.mark.skip(reason="the drop-in is not finished: set FEEDLINE_DROP_IN=1 to run its tests")
            )


@pytest.fixture(autouse=True)
def nothing_left_behind():
    yield
    left = multiprocessing.active_children()
    if left:
        gc.collect()  # an iterator in a cycle with a caught exception's traceback
        left = [child for child in multiprocessing.active_children() if child.is_alive()]
    for child in left:
        child.kill()
    assert not left
    assert not [name for name in os.listdir("/dev/shm") if f"_{os.getpid()}_" in name]
