# SPDX-License-Identifier: Apache-2.0
"""Each file defines one cause: its rule, thresholds, gain, fix, abstention and page. The modules in this folder
register themselves.

Each file defines one `CAUSE`, whose code is the name of the file; docs/findings.md explains how to add one.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import replace
from pathlib import Path

from feedline.diagnose.rules.cause import Cause, Rule
from feedline.findings import Entry, rules_in

__all__ = ["entries", "in_turn", "named", "registered"]


@functools.cache
def registered(folders: tuple[Path | str, ...] = ()) -> tuple[Cause, ...]:
    """Returns all causes in this folder and in additional `folders`, by priority.

    Raises:
        ConfigError: a file defines no cause, or a cause whose code differs from the file name. The error message names
        the file.
    """
    causes = [
        replace(cause, page=replace(cause.page, contradicted=tuple(cause.contradicted)))
        for cause in rules_in(sys.modules[__name__], folders, "CAUSE", Cause)
    ]
    return tuple(sorted(causes, key=lambda cause: (cause.rules[0].priority, cause.code)))


def named(code: str) -> Cause | None:
    """Returns the cause in this folder with this code, or None."""
    return next((cause for cause in registered() if cause.code == code), None)


def by_priority(causes: tuple[Cause, ...]) -> list[tuple[Rule, Cause]]:
    """Returns all rules in the order in which they are evaluated."""
    rules = [(rule, cause) for cause in causes for rule in cause.rules]
    return sorted(rules, key=lambda one: (one[0].priority, one[1].code))


def entries(folders: tuple[Path | str, ...] = ()) -> list[Entry]:
    """Returns the documentation pages of all causes."""
    return [cause.page for cause in registered(folders)]
