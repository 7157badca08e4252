# SPDX-License-Identifier: Apache-2.0
"""Checks after every test that no child process and no file in /dev/shm is left."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # after the parent folder's fixtures
_END_S = 20.0  # far longer than a process takes to end
pytest.importorskip("torch", reason="the drop-in is torch's DataLoader")


@pytest.fixture(autouse=True, scope="session")
def impatient_torch():
    """torch's loader gives its workers five seconds to end; after an error, they use all of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 0.3)
        yield


@pytest.fixture(autouse=True)
def nothing_left_behind():
    yield
    left = multiprocessing.active_children()
    if left:
        gc.collect()  # an iterator in a cycle with a caught exception's traceback
        for child in multiprocessing.active_children():
            child.join(_END_S)  # stopped a moment ago
        left = [child for child in multiprocessing.active_children() if child.is_alive()]
    for child in left:
        child.kill()
    assert not left
    assert not [name for name in os.listdir("/dev/shm") if f"_{os.getpid()}_" in name]
