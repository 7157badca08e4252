#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks tests that passed on a second try against tests/flaky.txt, which lists permitted tests with reasons.

tools/flaky.py TEST...     reports tests that failed and then passed alone; exit status 1 if one is not listed
"""

from __future__ import annotations

import sys
from pathlib import Path

LIST = Path(__file__).resolve().parents[1] / "tests" / "flaky.txt"


def listed(path: Path = LIST) -> dict[str, str]:
    """Returns the reason for each test, from lines `TEST # reason`."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        test, _, reason = (part.strip() for part in f"{line} ".partition("  # "))
        if not reason:
            raise ValueError(f"{path.name}:{number}: no reason: write `TEST  # reason`, not {line!r}")
        found[test] = reason
    return found


def report(tests: list[str], path: Path = LIST) -> list[str]:
    """Prints tests that passed on the second try, and returns those that are not listed."""
    reasons = listed(path)
    unlisted = []
    for test in tests:
        reason = reasons.get(test) or reasons.get(test.partition("[")[0])  # for one set of parameters, or for all
        if not reason:
            unlisted.append(test)
        print(
            f"passed on the second try: {test}: {reason or f'not listed in tests/{path.name}, so it counts as failed'}"
        )
    return unlisted


if __name__ == "__main__":
    sys.exit(1 if report(sys.argv[1:]) else 0)
