# SPDX-License-Identifier: Apache-2.0
"""The made-up samples beside these tests are found by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # behind those of the folder above
