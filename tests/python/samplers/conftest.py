# SPDX-License-Identifier: Apache-2.0
"""Orders for map-style datasets. Without torch there is nothing to test."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]
