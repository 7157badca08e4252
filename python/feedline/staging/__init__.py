# SPDX-License-Identifier: Apache-2.0
"""Datasets copied to a folder of this machine: what ``feedline stage`` does."""

from .stager import Staged, stage

__all__ = ["Staged", "stage"]
