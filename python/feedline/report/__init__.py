# SPDX-License-Identifier: Apache-2.0
"""Renders a run record as an HTML page, and compares two records."""

from __future__ import annotations

from .comparison import Comparison, compare
from .page import page

__all__ = ["Comparison", "compare", "page"]
