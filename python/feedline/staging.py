# SPDX-License-Identifier: Apache-2.0
"""The public function of ``feedline stage``, and its result."""

from .stage.stager import Staged, stage

__all__ = ["Staged", "stage"]
