# SPDX-License-Identifier: Apache-2.0
"""What is read: sources, datasets and their operations."""

from . import other_readers as other_readers  # the engine asks it, whichever module of this package is used first
