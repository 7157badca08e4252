# SPDX-License-Identifier: Apache-2.0
"""What the doctor can find: one file per cause, registered by being here."""

from __future__ import annotations

import functools
import sys

from ...findings import Entry, rules_in
from ..case import Cause

__all__ = ["entries", "registered"]


@functools.cache
def registered() -> tuple[Cause, ...]:
    """All causes, in their turns."""
    causes = rules_in(sys.modules[__name__], (), "CAUSE", Cause)
    return tuple(sorted(causes, key=lambda cause: (cause.turn, cause.page.code)))


def entries() -> list[Entry]:
    """The pages of all causes."""
    return [cause.page for cause in registered()]
