# SPDX-License-Identifier: Apache-2.0
"""Sources, datasets and their operations."""

from . import python_readers as python_readers  # registers Python's readers with the engine before any other module
