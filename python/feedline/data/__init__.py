# SPDX-License-Identifier: Apache-2.0
"""Sources, datasets and their operations."""

from . import other_readers as other_readers  # registers Python readers with the engine, whichever module of this
# package is imported first
