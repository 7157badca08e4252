# SPDX-License-Identifier: Apache-2.0
"""Frameworks that recreate loaders; `tools/test --integrations` installs them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test here uses a network
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.append(str(Path(__file__).parent))
pytest.importorskip("torch", reason="the drop-in is torch's DataLoader")
