# SPDX-License-Identifier: Apache-2.0
"""Verifies that a dataset is complete and readable, for ``feedline verify``."""

from .report import Verification
from .verifier import verify

__all__ = ["Verification", "verify"]
