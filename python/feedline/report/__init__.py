# SPDX-License-Identifier: Apache-2.0
"""A run record as one HTML page, and what differs between two records."""

from __future__ import annotations

from .comparison import Comparison, compare
from .page import page

__all__ = ["Comparison", "compare", "page"]
