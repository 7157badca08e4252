# SPDX-License-Identifier: Apache-2.0
"""An interactive shell in this process, as IPython and a notebook's kernel have one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))  # behind those of the folder above


@pytest.fixture
def shell() -> Iterator[Any]:
    """With the extension loaded; what it prints goes where pytest looks."""
    interactive = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed")
    pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    made = interactive.InteractiveShell.instance(config=config)
    try:
        made.run_line_magic("load_ext", "feedline")
        yield made
    finally:
        interactive.InteractiveShell.clear_instance()
