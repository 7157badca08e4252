# SPDX-License-Identifier: Apache-2.0
"""The public function of ``feedline verify``, and its result."""

from .verify.report import Verification
from .verify.verifier import verify

__all__ = ["Verification", "verify"]
