# SPDX-License-Identifier: Apache-2.0
"""Tests of environments need what `feedline[env]` brings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # behind those of the folder above, which has a conftest too

for module in ("click", "packaging", "yaml"):
    pytest.importorskip(module, reason=f"{module}, of feedline[env], is not installed")
