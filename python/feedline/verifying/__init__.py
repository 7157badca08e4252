# SPDX-License-Identifier: Apache-2.0
"""Proof that a dataset is whole: what ``feedline verify`` does."""

from .report import Verification
from .verifier import verify

__all__ = ["Verification", "verify"]
