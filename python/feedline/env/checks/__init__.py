# SPDX-License-Identifier: Apache-2.0
"""The checks of an environment, one file each, in a folder for each subject. A file registers itself; its name
is its check's code.
"""

from __future__ import annotations

import functools
import sys

from ...findings import Entry, rules_in
from ..rules import Check

__all__ = ["entries", "registered"]


@functools.cache
def registered() -> tuple[Check, ...]:
    """Returns all checks, sorted by priority."""
    return tuple(
        sorted(rules_in(sys.modules[__name__], (), "CHECK", Check), key=lambda one: (one.priority, one.page.code))
    )


def entries() -> list[Entry]:
    """Returns the documentation pages of all checks."""
    return [one.page for one in registered()]
