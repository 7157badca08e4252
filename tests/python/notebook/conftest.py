# SPDX-License-Identifier: Apache-2.0
"""An interactive shell in this process, like that of IPython and of a notebook's kernel."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))  # after the parent folder


@pytest.fixture
def shell() -> Iterator[Any]:
    """A shell with the extension loaded, whose output pytest captures."""
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
