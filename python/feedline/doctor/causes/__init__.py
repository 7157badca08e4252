# SPDX-License-Identifier: Apache-2.0
"""Causes that the doctor can find, one per file, in a folder for each subject; files register themselves."""

from __future__ import annotations

import functools
import sys

from ...findings import Entry, rules_in
from ..rules import Cause

__all__ = ["entries", "registered"]


@functools.cache
def registered() -> tuple[Cause, ...]:
    """Returns all causes in order."""
    causes = rules_in(sys.modules[__name__], (), "CAUSE", Cause)
    return tuple(sorted(causes, key=lambda cause: (cause.priority, cause.page.code)))


def entries() -> list[Entry]:
    """Returns the documentation pages of all causes."""
    return [cause.page for cause in registered()]
