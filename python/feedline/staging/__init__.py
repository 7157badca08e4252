# SPDX-License-Identifier: Apache-2.0
"""Copies datasets to a local folder, for ``feedline stage``."""

from .stager import Staged, stage

__all__ = ["Staged", "stage"]
