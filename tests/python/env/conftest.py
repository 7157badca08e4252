# SPDX-License-Identifier: Apache-2.0
"""Tests of environments need the packages of `feedline[env]`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # after the fixtures of the parent folder, which also has a conftest.py

for module in ("click", "packaging", "yaml"):
    pytest.importorskip(module, reason=f"{module}, of feedline[env], is not installed")
