# SPDX-License-Identifier: Apache-2.0
"""The public functions and classes of ``feedline tokenize``."""

from .tokenize.command import Report, tokenize
from .tokenize.part_files import Skipped

__all__ = ["Report", "Skipped", "tokenize"]
