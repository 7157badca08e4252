# SPDX-License-Identifier: Apache-2.0
"""Proofs of what docs/reproducibility.md promises. `tools/test --proofs` runs their long forms."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def long_form() -> bool:
    """Ten times as many cases or more: minutes, which is too long for every change and right before a release."""
    return os.environ.get("FEEDLINE_PROOFS") == "long"
