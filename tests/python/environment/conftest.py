# SPDX-License-Identifier: Apache-2.0
"""Tests of environments need what `feedline[env]` brings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

for module in ("click", "packaging", "yaml"):
    pytest.importorskip(module, reason=f"{module}, of feedline[env], is not installed")
