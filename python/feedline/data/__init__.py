# SPDX-License-Identifier: Apache-2.0
"""Sources, datasets and their operations."""

# Registers Python's readers with the engine before any other module.
from .storage import python_readers as python_readers
