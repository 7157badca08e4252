# SPDX-License-Identifier: Apache-2.0
"""One file per thing that can be the matter with an environment. It registers by being here; its name is the code."""

from __future__ import annotations

import functools
import sys

from ...findings import Entry, rules_in
from ..checking import Check

__all__ = ["entries", "registered"]


@functools.cache
def registered() -> tuple[Check, ...]:
    """All checks, in their turns."""
    return tuple(sorted(rules_in(sys.modules[__name__], (), "CHECK", Check), key=lambda one: (one.turn, one.page.code)))


def entries() -> list[Entry]:
    """The pages of all checks."""
    return [one.page for one in registered()]
