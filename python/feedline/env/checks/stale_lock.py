# SPDX-License-Identifier: Apache-2.0
"""The environment differs from its lock."""

from ..differences import compare_with_lock
from ..rules import AGAINST, Analysis, Check, Problems, names, page, problem


def _evaluate(analysis: Analysis) -> Problems:
    if analysis.lock is None:
        return
    found = compare_with_lock(analysis.lock, analysis.seen)
    if found:
        yield problem(
            "stale_lock", "error",
            f"the environment differs from {analysis.lock.source} in {len(found)}: "
            f"{names([one.text for one in found])}",
            fix="Install from the lock again, or write a new one: feedline env export", differences=len(found),
        )  # fmt: skip


CHECK = Check(
    page(
        code="stale_lock",
        title="the environment differs from its lock",
        means="Packages were installed or updated without the lock, so builds from the lock give a different "
        "environment.",
        recognised="Version, build and hash of each package in the lock are compared with the installed one; packages "
        "missing from the lock are reported, too.",
        to_do="Rebuild the environment from the lock, or write the lock again and review the changes.",
        abstains="Not checked without `--lock`.",
        example="the environment differs from uv.lock in 2: numpy 2.1.0 is installed as 2.2.0, pandas 2.2.3 is missing",
    ),
    AGAINST,
    _evaluate,
)
