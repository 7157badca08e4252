# SPDX-License-Identifier: Apache-2.0
"""Tests of the guarantees in docs/reproducibility.md. `tools/test --proofs` runs their long forms."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
